"""Who and what stands on the street: vehicles, people, street furniture, and the ground they shade."""

from dataclasses import dataclass

import numpy as np

from streets.bodies import body_at
from streets.coaches import WIDTH, coach_size
from streets.draws import Draws
from streets.ground import BAY, KERB, Footprint, Road


@dataclass(frozen=True)
class Thing:
    """Something that stands on the street: what, where, which way (across, along), and the seed of its looks."""

    kind: str
    s: float
    z: float
    seed: int
    heading: tuple[float, float] = (0.0, 1.0)


def vehicles(rng: Draws, road: Road) -> list[Thing]:
    """Parked rows, oncoming traffic, traffic ahead, a bus or a lorry now and then, two-wheelers."""
    things: list[Thing] = []
    for side, edge, parked in ((-1, road.left, road.parking[0]), (1, road.right, road.parking[1])):
        z = rng.between(5.5, 10) if side < 0 else rng.between(7, 12)
        while parked and z < 70:
            inside = any(where == side and near - 3 < z < far + 3 for where, near, far in road.gaps)
            if rng.chance(0.78) and not inside:
                way = 1.0 if (side < 0) == (rng.chance(0.85)) else -1.0
                kind = "suv" if rng.chance(0.22) else "car"
                things.append(Thing(kind, side * (edge - 1.0), z, rng.seed(), (0.0, way)))
            z += rng.between(5.2, 6.6)
    lanes = ((road.right - BAY * road.parking[1]) / 2, -1.0, 9.0), (-(road.left - BAY * road.parking[0]) / 2, 1.0, 14.0)
    for lane, way, first in lanes:
        z = first + rng.between(0, 14)
        while z < 100:
            draw = rng.random()
            kind = "bus" if draw < 0.05 else "lorry" if draw < 0.08 else "suv" if draw < 0.24 else "car"
            if draw < 0.72:
                length = coach_size(kind, 1)[0] if kind in ("bus", "lorry") else 4.5
                shift = rng.between(-0.25, 0.25)
                things.append(Thing(kind, lane + shift, z + length / 2, rng.seed(), (0.0, way)))
                z += length
            z += rng.between(5, 22)
    if rng.chance(0.14) and road.gaps:
        side, near, far = road.gaps[0]
        things.append(
            Thing(
                "car",
                side * (road.left if side < 0 else road.right) * 0.8,
                (near + far) / 2,
                rng.seed(),
                (-float(side), 0.0),
            )
        )
    return _spaced(things) + _two_wheelers(rng, road)


def _two_wheelers(rng: Draws, road: Road) -> list[Thing]:
    """Cyclists near the left edge of our lane, some oncoming, and a motorcycle on rare days."""
    edge = -(road.left - BAY * road.parking[0]) + 0.7
    things = []
    for _ in range(rng.count(0, 3)):
        things.append(Thing("cyclist", edge + rng.between(-0.2, 0.6), rng.between(6.5, 30), rng.seed()))
    if rng.chance(0.3):
        things.append(Thing("cyclist", road.right - BAY * road.parking[1] - 0.7, rng.between(9, 30), rng.seed()))
    if rng.chance(0.14):
        things.append(Thing("motorcycle", -0.6, rng.between(8, 18), rng.seed()))
    return things


def _spaced(things: list[Thing]) -> list[Thing]:
    """Leave out vehicles that would stand inside others."""
    kept: list[Thing] = []
    for thing in things:
        half = 6.5 if thing.kind in ("bus", "lorry") else 2.6
        if all(abs(other.s - thing.s) > 1.9 or abs(other.z - thing.z) > half + 2.6 for other in kept):
            kept.append(thing)
    return kept


def walkers(rng: Draws, road: Road, fronts: tuple[float, float]) -> list[Thing]:
    """People on both pavements, alone or in pairs, some with children or prams, and a few who cross."""
    things = []
    for side, edge, front in ((-1, road.left, fronts[0]), (1, road.right, fronts[1])):
        for _ in range(rng.count(1, 6)):
            z = rng.between(7.5, 50)
            s = side * rng.between(edge + 0.4, front - 0.4)
            things.append(Thing("walker", s, z, rng.seed()))
            draw = rng.random()
            if draw < 0.25:
                things.append(Thing("walker", s + 0.5, z + 0.2, rng.seed()))
            elif draw < 0.36:
                things.append(Thing("child", s + 0.5, z - 0.1, rng.seed()))
            elif draw < 0.46:
                things.append(Thing("pram", s + 0.15, z - 0.8, rng.seed()))
            elif draw < 0.49:
                things.append(Thing("dog", s + 0.7, z - 0.1, rng.seed()))
    if road.crossing > 0 or rng.chance(0.15):
        z = road.crossing + 1.5 if road.crossing > 0 else rng.between(12, 25)
        for _ in range(rng.count(1, 3)):
            things.append(Thing("crosser", rng.between(-road.left, road.right), z + rng.between(-1, 1), rng.seed()))
    return things


def furniture(rng: Draws, road: Road, fronts: tuple[float, float]) -> list[Thing]:
    """Lamps in step, signals at crossings and stop lines, signs, boards, bollards, cones, street trees."""
    things = []
    for side, edge, front in ((-1, road.left, fronts[0]), (1, road.right, fronts[1])):
        for z in np.arange(rng.between(9, 24), 100.0, rng.between(24, 34)):
            things.append(Thing("lamp", side * (edge + 0.4), float(z), rng.seed()))
        for _ in range(rng.count(0, 2)):
            things.append(Thing("sign", side * (edge + 0.45), rng.between(9, 45), rng.seed()))
        for _ in range(rng.count(0, 2)):
            things.append(Thing("board", side * (front - 0.5), rng.between(10, 40), rng.seed()))
        if rng.chance(0.3):
            start, step = rng.between(8, 20), rng.between(1.5, 2.5)
            things += [
                Thing("bollard", side * (edge + 0.35), start + k * step, rng.seed()) for k in range(rng.count(3, 7))
            ]
        if rng.chance(0.3):
            step = rng.between(10, 16)
            start = rng.between(12, 22)
            things += [Thing("tree", side * (edge + 0.8), start + k * step, rng.seed()) for k in range(rng.count(1, 5))]
    if road.stop > 0 or rng.chance(0.35):
        z = max(road.stop, rng.between(9, 14)) + 1.0
        things += [
            Thing("signal", -(road.left + 0.4), z, rng.seed()),
            Thing("signal", road.right + 0.4, z + rng.between(0, 9), rng.seed()),
        ]
    if road.crossing > 0:
        things += [
            Thing("beacon", side * (edge + 0.35), road.crossing + 0.2, rng.seed())
            for side, edge in ((-1, road.left), (1, road.right))
        ]
    if rng.chance(0.2) and not road.parking[1]:
        start = rng.between(7, 16)
        things += [Thing("cone", road.right - 0.9, start + k * 1.8, rng.seed()) for k in range(4)]
    return things


ON_THE_ROAD = ("cyclist", "motorcycle", "crosser", "cone")
SLENDER = {
    "lamp": (0.08, 7.0, 0.5),
    "signal": (0.1, 3.3, 0.5),
    "sign": (0.06, 2.9, 0.4),
    "tree": (0.2, 5.0, 0.6),
    "board": (0.2, 0.3, 0.5),
    "cone": (0.15, 0.6, 0.8),
}
"""Half width, height and depth of shade of slender things; people are a little wider."""


def footprint(thing: Thing) -> Footprint:
    """The ground that a thing shades."""
    if thing.kind in ("car", "suv"):
        body = body_at(thing.kind, thing.seed)
        across, along = body.half_width * 0.92, body.half_length * 0.96
        if abs(thing.heading[0]) > 0.5:
            across, along = along, across
        return Footprint(thing.s, thing.z, across, along, body.roof * 0.9)
    if thing.kind in ("bus", "lorry"):
        length, height = coach_size(thing.kind, thing.seed)
        return Footprint(thing.s, thing.z, WIDTH / 2, length / 2, height)
    half, height, contact = SLENDER.get(thing.kind, (0.2, 1.5, 0.7))
    level = 0.0 if thing.kind in ON_THE_ROAD else KERB
    return Footprint(thing.s, thing.z, half, half * 0.7, height, contact, level)
