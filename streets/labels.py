"""Names for the ids of the 31 CamVid classes: an id is a place in `CLASSES`."""

from certiseg.hierarchy import VOID, load_hierarchy

__all__ = ["CLASSES", "VOID"]

CLASSES = load_hierarchy("camvid").classes

SKY, BUILDING, WALL, BRIDGE, TUNNEL, ARCHWAY, POLE, CONE = range(8)
ROAD, MARKING, MARKING_OFF, SIDEWALK, PARKING, SHOULDER = range(8, 14)
TREE, VEGETATION, SIGN, TEXT, TRAFFIC_LIGHT, FENCE = range(14, 20)
CAR, SUV, TRUCK_BUS, TRAIN, OTHER_MOVING = range(20, 25)
PEDESTRIAN, CHILD, PRAM, ANIMAL, BICYCLIST, MOTORCYCLE = range(25, 31)
