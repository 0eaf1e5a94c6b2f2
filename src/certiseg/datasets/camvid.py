"""CamVid (Brostow et al. 2008): 31 street classes, splits train, val, test and a few images at full size."""

from __future__ import annotations

from pathlib import Path

from certiseg.datasets.base import Dataset, list_entries, read_classes
from certiseg.errors import InputError

SPLITS = ("train", "val", "test", "full_size")
CLASSES = (
    *("Sky", "Building", "Wall", "Bridge", "Tunnel", "Archway", "Column_Pole", "TrafficCone"),
    *("Road", "LaneMkgsDriv", "LaneMkgsNonDriv", "Sidewalk", "ParkingBlock", "RoadShoulder"),
    *("Tree", "VegetationMisc", "SignSymbol", "Misc_Text", "TrafficLight", "Fence"),
    *("Car", "SUVPickupTruck", "Truck_Bus", "Train", "OtherMoving", "Pedestrian", "Child"),
    *("CartLuggagePram", "Animal", "Bicyclist", "MotorcycleScooter"),
)


class CamVid(Dataset):
    """One split of CamVid in the layout `ROOT/SPLIT/images/NAME.jpg`, `ROOT/SPLIT/labels/NAME.png`."""

    def __init__(self, root: str | Path, split: str = "train") -> None:
        if split not in SPLITS:
            raise InputError(f"split must be one of {', '.join(SPLITS)}, got {split!r}; choose one of them")
        folder = Path(root) / split
        listed = Path(root) / "classes.txt"
        if listed.is_file() and read_classes(listed) != CLASSES:
            raise InputError(
                f"{listed} must list the 31 CamVid classes in order, got another list; use data set folder"
            )
        super().__init__("camvid", CLASSES, list_entries(folder / "images", folder / "labels"))
