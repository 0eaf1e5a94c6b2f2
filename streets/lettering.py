"""Capital letters on a five by five grid, for shop signs, hoardings and words on the road."""

import numpy as np
import numpy.typing as npt

GLYPHS = {
    "A": "ehvhh", "B": "uhuhu", "C": "fgggf", "D": "uhhhu", "E": "vgugv", "F": "vgugg", "G": "fgjhf", "H": "hhvhh",
    "I": "e444e", "K": "ikoki", "L": "ggggv", "M": "hrlhh", "N": "hpljh", "O": "ehhhe", "P": "uhugg", "R": "uhuih",
    "S": "fge1u", "T": "v4444", "U": "hhhhe", "V": "hhha4", "W": "hhlrh", "X": "ha4ah", "Y": "ha444", "Z": "v248v",
}  # fmt: skip
"""Five rows per letter, each a base-32 digit whose five bits are the columns."""

SHOPS = (
    "BAKERY", "BOOKS", "CAFE", "FLOWERS", "CHEMIST", "TAILOR", "CYCLES", "BARBER", "DELI", "GALLERY", "POST OFFICE",
    "HOTEL", "OPTICIAN", "TOYS", "SHOES", "THE CROWN", "RECORDS", "TEA ROOM", "FISH BAR", "ESTATES", "BANK", "FRUIT",
)  # fmt: skip


def word(text: str) -> npt.NDArray[np.bool_]:
    """A text as a bitmap (5, 6 n - 1): true where there is ink."""
    bits = np.zeros((5, 6 * len(text)), dtype=bool)
    for place, letter in enumerate(text):
        for row, digit in enumerate(GLYPHS.get(letter, "00000")):
            for column in range(5):
                bits[row, 6 * place + column] = bool(int(digit, 32) >> (4 - column) & 1)
    return bits[:, :-1]
