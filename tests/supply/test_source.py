"""What no file of the package may do: run data as code, call a shell, or talk to a network; exceptions are named."""

import ast
from pathlib import Path

import pytest

import certiseg

SOURCE = Path(certiseg.__file__).parent
FILES = {str(path.relative_to(SOURCE)): path for path in sorted(SOURCE.rglob("*.py"))}

EXCEPTIONS = {
    # One place decodes image files, within its limits.
    ("images/__init__.py", "Image.open"),
    # Files that can run code are loaded only with the user's word: --trust-model.
    ("models/trusted.py", "torch.jit.load"),
    ("models/trusted.py", "torch.export.load"),
    # `torch:package.module:factory` names the user's own code.
    ("models/load.py", "import_module"),
    # Commands and optional libraries, by names that stand in the source.
    ("cli/__init__.py", "import_module"),
    ("models/settings.py", "import_module"),
}
FORBIDDEN_CALLS = (
    *("eval", "exec", "compile", "__import__", "import_module", "os.system", "os.popen", "tempfile.mktemp"),
    *("yaml.unsafe_load", "yaml.full_load", "torch.jit.load", "torch.export.load", "torch.hub.load"),
    *("importlib.reload", "runpy.run_path", "runpy.run_module", "Image.open"),
)
FORBIDDEN_MODULES = frozenset(
    (
        *("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "ctypes", "cffi"),
        *("urllib", "http", "requests", "httpx", "aiohttp", "ftplib", "smtplib", "telnetlib", "wget"),
    )
)
SERVERS = ("viewer/", "runs/ray.py")
"""Only these may open sockets: a page for this machine, and workers that the user named."""


def name_of(node: ast.expr) -> str:
    """The dotted name of what is called."""
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def keyword(call: ast.Call, name: str) -> object:
    """The constant value of a keyword argument, Ellipsis where it is something else, None where it is not given."""
    for given in call.keywords:
        if given.arg == name:
            return given.value.value if isinstance(given.value, ast.Constant) else ...
    return None


def offences(tree: ast.AST) -> set[str]:
    """Everything in a file that needs an exception."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] in FORBIDDEN_MODULES}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in FORBIDDEN_MODULES:
            found.add(node.module or "")
        elif isinstance(node, ast.Call):
            found |= offences_of_call(node)
    return found


def offences_of_call(call: ast.Call) -> set[str]:
    name = name_of(call.func)
    plain = name.removeprefix("builtins.").removeprefix("importlib.")
    found = {wrong for wrong in FORBIDDEN_CALLS if wrong in (name, plain)}  # network.eval() only sets a mode
    if keyword(call, "shell") not in (None, False):
        found.add("shell=")
    if name == "torch.load" and keyword(call, "weights_only") is not True:
        found.add("torch.load without weights_only=True")
    if keyword(call, "allow_pickle") not in (None, False):
        found.add("allow_pickle=")
    if keyword(call, "trust_remote_code") not in (None, False):
        found.add("trust_remote_code=")
    if name.endswith("from_pretrained") and keyword(call, "local_files_only") is not True:
        found.add("from_pretrained without local_files_only=True")
    if name == "yaml.load" and not any("strictloader" in ast.dump(part).lower() for part in call.args[1:]):
        found.add("yaml.load without the strict safe loader")
    return found


@pytest.mark.parametrize("name", FILES)
def test_no_file_runs_data_or_calls_out(name):
    found = {wrong for wrong in offences(ast.parse(FILES[name].read_text("utf-8"))) if (name, wrong) not in EXCEPTIONS}
    if name.startswith(SERVERS):
        found = {wrong for wrong in found if wrong.split(".")[0] not in ("http", "urllib")}
    assert not found


def test_every_exception_is_still_needed():
    needed = {(name, wrong) for name, path in FILES.items() for wrong in offences(ast.parse(path.read_text("utf-8")))}
    assert needed >= EXCEPTIONS


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "import urllib.request",
        "eval('1')",
        "exec('1')",
        "builtins.exec('1')",
        "os.system('ls')",
        "subprocess.run('ls', shell=True)",
        "subprocess.run('ls', shell=flag)",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "torch.jit.load(path)",
        "np.load(path, allow_pickle=True)",
        "yaml.load(text, yaml.Loader)",
        "Auto.from_pretrained(name)",
        "Auto.from_pretrained(name, local_files_only=True, trust_remote_code=True)",
        "importlib.import_module(name)",
        "Image.open(path)",
    ],
)
def test_the_search_finds_what_it_looks_for(text):
    assert offences(ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "network.eval()",
        "re.compile('a')",
        "torch.load(path, weights_only=True)",
        "subprocess.run(['ls'], shell=False)",
        "np.load(path, allow_pickle=False)",
        "yaml.load(text, _StrictLoader)",
        "yaml.safe_load(text)",
    ],
)
def test_the_search_leaves_harmless_lines_alone(text):
    assert not offences(ast.parse(text))
