"""A device that is not there: tensors that live on it compute as CPU tensors do and refuse what an accelerator refuses.

`.device` of its tensors is cuda; they cannot be handed to NumPy, nor meet tensors of the CPU in one operation; every
copy to the host, single numbers included, is written down.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_map

CUDA, CPU = torch.device("cuda"), torch.device("cpu")
_NUMBERS = ("item", "__bool__", "__int__", "__float__", "__index__", "tolist")
_DEVICE = Tensor.device.__get__


class There(Tensor):
    """A tensor of the device."""


def there(value: Any) -> Any:
    """A tensor, or all parameters of a network, moved to the device."""
    if isinstance(value, torch.nn.Module):
        for module in value.modules():
            for kind in (module._parameters, module._buffers):
                kind.update({name: there(held) for name, held in kind.items() if held is not None})
        return value
    return value.detach().clone().as_subclass(There)


class Accelerator(TorchFunctionMode):
    """Inside it `device="cuda"` works. `left`: the shape of everything that was copied to the host."""

    def __init__(self) -> None:
        super().__init__()
        self.left: list[tuple[int, ...]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = dict(kwargs or {}), getattr(func, "__name__", "")
        held = [value for value in tree_flatten((args, kwargs))[0] if isinstance(value, Tensor)]
        inside = any(isinstance(value, There) for value in held)
        if func == _DEVICE:
            return CUDA if inside else CPU
        if name in ("numpy", "__array__") and inside:
            raise TypeError("can't convert cuda tensor to numpy: use Tensor.cpu() first")
        if name in _NUMBERS and inside:
            self.left.append(tuple(args[0].shape))
        goal = self._goal(name, args, kwargs)
        if goal == CPU and inside:
            self.left.append(tuple(args[0].shape))
        if inside and any(type(value) is Tensor and value.ndim > 0 for value in held):
            raise RuntimeError(f"{name}: expected all tensors to be on the same device")
        if goal is not None:
            args = tuple(CPU if _is_device(value) else value for value in args)
            kwargs |= {"device": CPU} if "device" in kwargs else {}
        with torch._C.DisableTorchFunctionSubclass():
            found = func(*tree_map(_plain, args), **tree_map(_plain, kwargs))
        return _marked(found) if (inside and goal != CPU) or (goal is not None and goal.type == "cuda") else found

    @staticmethod
    def _goal(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.device | None:
        """The device that a call asks for."""
        if name == "cpu":
            return CPU
        asked = [value for value in (kwargs.get("device"), *args[1:]) if _is_device(value)]
        return torch.device(asked[0]) if asked else None


def _is_device(value: Any) -> bool:
    return isinstance(value, torch.device) or (isinstance(value, str) and value in ("cpu", "cuda"))


def _plain(value: Any) -> Any:
    return value.as_subclass(Tensor) if isinstance(value, There) else value


def _marked(value: Any) -> Any:
    if isinstance(value, Iterator):
        return map(_marked, value)
    return tree_map(lambda held: held.as_subclass(There) if isinstance(held, Tensor) else held, value)
