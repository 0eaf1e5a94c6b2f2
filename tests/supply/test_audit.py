"""The audit counts what it checked, and never takes silence for health."""

from tests.supply import audit

PINS = dict(audit.read_pins(audit.CONSTRAINTS.read_text("utf-8")))
SOME = next(iter(PINS))


def newest(version, *ids):
    return {"info": {"version": version}, "vulnerabilities": [{"id": name} for name in ids]}


def skipped():
    return {"dependencies": [{"name": name, "skip_reason": "not found"} for name in PINS]}


def test_pins_are_read_without_comments():
    assert audit.read_pins("# a note\nJinja2==3.1.6\nast_serialize==0.1  # why\n\n") == [
        ("jinja2", "3.1.6"),
        ("ast-serialize", "0.1"),
    ]
    assert len(PINS) > 80


def test_what_pip_audit_says_is_taken():
    answer = {"dependencies": [{"name": name, "version": v, "vulns": []} for name, v in PINS.items()]}
    answer["dependencies"][0]["vulns"] = [{"id": "PYSEC-1"}]
    found = audit.findings(answer, lambda _: None)
    assert [finding.advisories for finding in found if finding.advisories] == [("PYSEC-1",)]
    assert all(finding.checked for finding in found)


def test_a_skipped_pin_is_checked_only_by_a_record_of_its_own_version():
    found = audit.findings(
        skipped(), lambda name: newest(PINS[name], "GHSA-1") if name == SOME else newest("0.0.0", "X")
    )
    assert [finding.name for finding in found if finding.checked] == [SOME]
    assert [finding.advisories for finding in found if finding.advisories] == [("GHSA-1",)]


def test_nothing_checked_is_a_failure(monkeypatch, capsys):
    monkeypatch.setattr(audit, "run_pip_audit", lambda _: skipped())
    monkeypatch.setattr(audit, "ask_pypi", lambda _: None)
    assert audit.main("pip-audit") == 1
    assert "0 checked" in capsys.readouterr().out
    monkeypatch.setattr(audit, "ask_pypi", lambda name: newest(PINS[name]))
    assert audit.main("pip-audit") == 0
