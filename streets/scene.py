"""One street scene from a plan: sky, ground, then everything else from the far end to the near."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from certiseg.errors import InputError
from streets import furniture, people
from streets.bridges import draw_bridge
from streets.camera import Camera
from streets.canvas import Stage
from streets.coaches import coach_size, draw_coach
from streets.draws import stream
from streets.grain import Grain
from streets.ground import own_lane, paint_ground
from streets.layout import END, Plan, draw_plan, skylines
from streets.lens import develop
from streets.light import Light
from streets.lots import Lot, draw_house, grow
from streets.sky import paint_distance, paint_sky
from streets.traffic import Thing, footprint
from streets.vehicles import draw_car

Draw = Callable[[Stage, float, float, int], None]
FIGURES: dict[str, Draw] = {
    "walker": people.draw_walker,
    "cyclist": people.draw_cyclist,
    "motorcycle": people.draw_motorcycle,
    "pram": people.draw_pram,
    "dog": people.draw_dog,
    "lamp": furniture.draw_lamp,
    "signal": furniture.draw_traffic_light,
    "sign": furniture.draw_sign,
    "board": furniture.draw_board,
    "bollard": furniture.draw_bollard,
    "cone": furniture.draw_cone,
    "beacon": furniture.draw_gantry,
}


def street(seed: int, *, height: int = 360, width: int = 480) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """A street scene (height, width, 3) and its exact labels (height, width) in the CamVid classes.

    A pure function of its arguments: the seed decides the street, whatever the size of the picture. The scene is
    painted at twice the size; a pixel is the mean of its four parts, and its label is that of the upper left one.
    """
    plan, camera = _set_up(seed, height, width)
    stage = Stage(camera, Light(plan.weather, *skylines(plan)), Grain(seed))
    paint(stage, plan)
    image = develop(stage.picture, plan.lens, stream(seed, 3))
    return image, np.ascontiguousarray(stage.label[::2, ::2])


def lane(seed: int, *, height: int = 360, width: int = 480) -> npt.NDArray[np.bool_]:
    """Where the camera's own lane lies in the scene, up to 40 m ahead, whatever stands on it."""
    plan, camera = _set_up(seed, height, width)
    return own_lane(camera, plan.road)[::2, ::2].copy()


def _set_up(seed: int, height: int, width: int) -> tuple[Plan, Camera]:
    """The plan of a street and the camera that looks at it, at twice the size of the picture."""
    if min(height, width) < 64:
        raise InputError(f"height and width must be at least 64, got {height} x {width}; ask for a larger picture")
    if not 0 <= seed < 2**63:
        raise InputError(f"seed must be from 0 to 2**63 - 1, got {seed}; choose another")
    plan = draw_plan(stream(seed, 1))
    camera = Camera(
        width=2 * width,
        height=2 * height,
        focal=2 * plan.field * max(width, height * 4 / 3),
        horizon=2 * height * plan.horizon,
        eye=plan.eye,
        lane=plan.lane,
        bend=plan.bend,
        turn=plan.turn,
    )
    return plan, camera


def paint(stage: Stage, plan: Plan) -> None:
    """Paint a plan from back to front.

    A lot is due at its far end: things on the road beside it come later and stand before it, things beyond it come
    earlier and are hidden by it where the street bends.
    """
    paint_sky(stage)
    paint_distance(stage)
    paint_ground(stage, plan.road, [footprint(thing) for thing in plan.things], plan.bridge)
    for side in (-1, 1):
        draw_house(stage, Lot("house", side, END + 4, END + 16, 0.5 + 4 * (side > 0), 9.0, plan.bridge_seed + side))
    queue: list[tuple[float, int, Lot | Thing | None]] = [
        (lot.far, k, lot) for k, lot in enumerate(plan.lots) if lot.far > 2
    ]
    queue += [(thing.z, 1000 + k, thing) for k, thing in enumerate(plan.things)]
    if plan.bridge:
        queue.append((plan.bridge + 8.0, 2000, None))
    for _, _, item in sorted(queue, key=lambda entry: (-entry[0], entry[1])):
        if item is None:
            draw_bridge(stage, plan.bridge, plan.bridge_seed)
        elif isinstance(item, Lot):
            item.draw(stage)
        else:
            draw_thing(stage, item, plan)


def draw_thing(stage: Stage, thing: Thing, plan: Plan) -> None:
    """Draw a thing by its kind."""
    if thing.kind in ("car", "suv"):
        draw_car(stage, thing.kind, thing.s, thing.z, thing.heading, thing.seed)
    elif thing.kind in ("bus", "lorry"):
        if thing.z - coach_size(thing.kind, thing.seed)[0] / 2 > 3:
            draw_coach(stage, thing.kind, thing.s, thing.z, thing.heading[1] > 0, thing.seed)
    elif thing.kind == "child":
        people.draw_walker(stage, thing.s, thing.z, thing.seed, child=True)
    elif thing.kind == "crosser":
        people.draw_walker(stage, thing.s, thing.z, thing.seed, base=0.0)
    elif thing.kind == "tree":
        grow(stage, thing.s, thing.z, 6.5, plan.lots[0].season, thing.seed)
    else:
        FIGURES[thing.kind](stage, thing.s, thing.z, thing.seed)
