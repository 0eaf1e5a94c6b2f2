"""The 31 CamVid classes, in the order of presets/camvid.yaml: a label id is a place in this tuple."""

CLASSES = (
    "Sky",
    "Building",
    "Wall",
    "Bridge",
    "Tunnel",
    "Archway",
    "Column_Pole",
    "TrafficCone",
    "Road",
    "LaneMkgsDriv",
    "LaneMkgsNonDriv",
    "Sidewalk",
    "ParkingBlock",
    "RoadShoulder",
    "Tree",
    "VegetationMisc",
    "SignSymbol",
    "Misc_Text",
    "TrafficLight",
    "Fence",
    "Car",
    "SUVPickupTruck",
    "Truck_Bus",
    "Train",
    "OtherMoving",
    "Pedestrian",
    "Child",
    "CartLuggagePram",
    "Animal",
    "Bicyclist",
    "MotorcycleScooter",
)

SKY, BUILDING, WALL, BRIDGE, TUNNEL, ARCHWAY, POLE, CONE = range(8)
ROAD, MARKING, MARKING_OFF, SIDEWALK, PARKING, SHOULDER = range(8, 14)
TREE, VEGETATION, SIGN, TEXT, TRAFFIC_LIGHT, FENCE = range(14, 20)
CAR, SUV, TRUCK_BUS, TRAIN, OTHER_MOVING = range(20, 25)
PEDESTRIAN, CHILD, PRAM, ANIMAL, BICYCLIST, MOTORCYCLE = range(25, 31)

VOID = 255
