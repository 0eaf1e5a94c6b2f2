"""The light of a day and the habits of a camera, drawn at random."""

from math import sqrt

from streets.draws import Draws
from streets.lens import Lens
from streets.light import Colour, Weather


def choose_weather(rng: Draws) -> Weather:
    """Sun, cloud or dusk."""
    name = rng.pick(("sunny", "sunny", "sunny", "sunny", "overcast", "overcast", "overcast", "dusk"))
    up, along = rng.between(0.40, 0.85), rng.between(-0.8, 0.45)
    across = rng.between(0.35, 0.8) * (1 if rng.chance(0.5) else -1)
    size = sqrt(up * up + across * across + along * along)
    sun = (across / size, up / size, along / size)
    kind = {"sunny": sunny, "overcast": overcast, "dusk": dusk}[name]
    return kind(sun, rng.between(0.85, 1.15), rng)


def sunny(sun: Colour, level: float, rng: Draws) -> Weather:
    """Direct sun, a sky from milky to blue, fair-weather clouds."""
    blue = rng.between(0.0, 1.0)
    return Weather(
        name="sunny",
        sun=sun,
        sunlight=(1.62, 1.50, 1.32),
        ambient=_grey(0.25 * level, 0.03),
        sky=(0.80 - 0.58 * blue, 0.88 - 0.46 * blue, 0.95 - 0.20 * blue),
        rim=(0.82, 0.92, 0.98),
        cloudiness=rng.between(0.25, 0.55),
        cloud=(1.15, 1.15, 1.15),
        haze=0.16,
    )


def overcast(sun: Colour, level: float, rng: Draws) -> Weather:
    """A white sky that blinds the camera; hardly a shadow."""
    return Weather(
        name="overcast",
        sun=sun,
        sunlight=(0.26, 0.25, 0.24),
        ambient=_grey(0.42 * level, 0.015),
        sky=(1.1, 1.14, 1.17),
        rim=(1.3, 1.3, 1.3),
        cloudiness=rng.between(0.4, 0.7),
        cloud=(0.9, 0.93, 0.96),
        haze=0.24,
    )


def dusk(sun: Colour, level: float, rng: Draws) -> Weather:
    """Heavy clouds at the end of the day."""
    return Weather(
        name="dusk",
        sun=sun,
        sunlight=(0.04, 0.035, 0.03),
        ambient=_grey(0.14 * level, 0.012),
        sky=(0.30, 0.36, 0.42),
        rim=(0.62, 0.64, 0.62),
        cloudiness=rng.between(0.5, 0.8),
        cloud=(0.17, 0.20, 0.23),
        haze=0.18,
    )


def _grey(level: float, blue: float) -> Colour:
    """A light of a level, cooler by `blue`."""
    return level - blue, level, level + blue


def choose_lens(rng: Draws, weather: str) -> Lens:
    """One camera's exposure, contrast, tint, blur and noise."""
    cool = rng.between(-0.02, 0.11)
    return Lens(
        exposure=rng.between(0.8, 1.5),
        contrast=rng.between(0.25, 0.7),
        tint=(1.0 - cool, 1.0, 1.0 + cool),
        glow=rng.between(0.02, 0.06),
        blur=rng.between(0.15, 0.5),
        noise=rng.between(0.008, 0.022) * (1.3 if weather == "dusk" else 1.0),
        vignette=rng.between(0.0, 0.25),
    )
