"""The plan of a street, drawn at random: its shape, its light, its houses and what stands on it."""

from dataclasses import dataclass

from streets.conditions import choose_lens, choose_weather
from streets.draws import Draws
from streets.ground import BAY, Road
from streets.lens import Lens
from streets.light import Skyline, Weather
from streets.lots import Lot
from streets.traffic import Thing, furniture, vehicles, walkers

END = 190.0


@dataclass(frozen=True)
class Plan:
    """All that is decided before a pixel is painted; it does not depend on the size of the picture."""

    weather: Weather
    lens: Lens
    road: Road
    lots: tuple[Lot, ...]
    things: tuple[Thing, ...]
    bridge: float
    bridge_seed: int
    eye: float
    lane: float
    bend: float
    turn: float
    horizon: float
    field: float


def draw_plan(rng: Draws) -> Plan:
    """A random street."""
    weather = choose_weather(rng)
    road = choose_road(rng)
    fronts = (road.left + rng.between(1.6, 3.2), road.right + rng.between(1.6, 3.2))
    season = "bare" if rng.chance(0.72) else "leafy"
    green = rng.between(0.1, 0.5) if rng.chance(0.85) else 0.75
    lots = [
        lot for side, front in zip((-1, 1), fronts, strict=True) for lot in _row(rng, side, front, road, season, green)
    ]
    bridge = rng.between(38, 75) if rng.chance(0.08) else 0.0
    things = [*vehicles(rng, road), *walkers(rng, road, fronts), *furniture(rng, road, fronts)]
    driving = -(road.left - BAY * road.parking[0]) / 2
    return Plan(
        weather=weather,
        lens=choose_lens(rng, weather.name),
        road=road,
        lots=tuple(lots),
        things=tuple(things),
        bridge=bridge,
        bridge_seed=rng.seed(),
        eye=rng.between(1.4, 1.65),
        lane=driving + rng.between(-0.25, 0.35),
        bend=rng.between(-1, 1) * rng.pick((0.0, 0.0004, 0.0022, 0.004)),
        turn=rng.between(-0.10, 0.10),
        horizon=rng.between(0.43, 0.53),
        field=rng.between(0.92, 1.12),
    )


def choose_road(rng: Draws) -> Road:
    """Widths, bays, paint and wear of the road."""
    parking = (rng.chance(0.45), rng.chance(0.4))
    lane = rng.between(2.9, 3.7)
    gaps = []
    for side in (-1, 1):
        if rng.chance(0.5):
            near = rng.between(16, 48)
            gaps.append((side, near, near + rng.between(6, 9)))
    grey = rng.between(94, 118)
    left, right = lane + BAY * parking[0], lane + BAY * parking[1]
    stops = rng.chance(0.25)
    warm = rng.between(-4, 4)
    slab = rng.between(112, 140)
    return Road(
        left=left,
        right=right,
        parking=parking,
        shoulder=rng.between(0.35, 0.8) if rng.chance(0.35) else 0.0,
        verge=(
            rng.between(0.9, 1.5) if rng.chance(0.12) else 0.0,
            rng.between(0.9, 1.5) if rng.chance(0.15) else 0.0,
        ),
        gaps=tuple(gaps),
        centre=rng.pick(("dashes", "dashes", "dashes", "dashes", "dashes", "solid", "hatched")),
        yellow=rng.chance(0.65),
        crossing=rng.between(12, 26) if rng.chance(0.18) else 0.0,
        stop=rng.between(8, 22) if stops else -9.0,
        text=(rng.pick(("SLOW", "BUS", "STOP")), rng.between(6, 14)) if rng.chance(0.2) else ("", 0.0),
        arrow=rng.between(5, 15) if rng.chance(0.2) else 0.0,
        patches=_patches(rng, left, right),
        asphalt=(grey + warm, grey + 1, grey + 5 - warm),
        slab=(slab + 3, slab, slab - 5),
    )


def _patches(rng: Draws, left: float, right: float) -> tuple[tuple[float, float, float, float, float], ...]:
    """Repairs in the asphalt and manhole covers, as (s0, s1, z0, z1, tone)."""
    patches = []
    for _ in range(rng.count(3, 7)):
        s, z = rng.between(-left, right - 1), rng.between(4, 34)
        size = (rng.between(0.5, 2.2), rng.between(0.6, 7.0))
        patches.append((s, s + size[0], z, z + size[1], rng.pick((0.82, 0.9, 1.1, 1.16))))
    for _ in range(rng.count(1, 3)):
        s, z = rng.between(-left + 0.6, right - 1), rng.between(4.5, 20)
        patches.append((s, s + 0.5, z, z + 0.45, 0.66))
    return tuple(patches)


def _row(rng: Draws, side: int, front: float, road: Road, season: str, green: float) -> list[Lot]:
    """The lots of one side from behind the camera to the end of the street."""
    lots: list[Lot] = []
    z = rng.between(-42, -36)
    gaps = [(near, far) for where, near, far in road.gaps if where == side]
    height = rng.between(6.5, 10.5)
    while z < END:
        garden = rng.chance(green)
        size = rng.between(9, 22) if garden else rng.between(5.5, 14)
        size *= 1.0 + max(0.0, z - 40.0) / 60.0
        for near, far in gaps:
            if z < near + 0.1 and z + size > near - 2.0:
                size = near - z
            elif near <= z < far:
                z = far
        if size > 2.5:
            kind = "garden" if garden else ("arch" if rng.chance(0.03) else "house")
            tall = min(max(height + rng.between(-2.5, 3.0), 5.5), 14.0)
            before = lots[-1].height if lots and lots[-1].kind != "garden" and lots[-1].far > z - 0.1 else 0.0
            lots.append(Lot(kind, side, z, z + size, front, tall, rng.seed(), season, screen=before))
        z += max(size, 0.5)
    return lots


def skylines(plan: Plan) -> tuple[Skyline, Skyline]:
    """What the two sides put before the sun."""
    fronts = [min(lot.front for lot in plan.lots if lot.side == side) for side in (-1, 1)]
    left, right = Skyline(-fronts[0]), Skyline(fronts[1])
    for lot in plan.lots:
        line = left if lot.side < 0 else right
        if lot.kind == "garden":
            line.raise_to(lot.near, lot.far, 7.0, 0.45 if lot.season == "bare" else 0.8)
        else:
            line.raise_to(lot.near, lot.far, lot.height + 1.0)
    return left, right
