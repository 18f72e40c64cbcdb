# What the tests with the stand-in of the driver share: the environment that has it, and what it has recorded.
# The first two arguments are the folders of a new and of an old driver.
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import common  # noqa: E402

NEW, OLD = sys.argv[1:3]
FOLDER = tempfile.TemporaryDirectory()
CACHE = common.kernel_cache(FOLDER.name)

# Calls that give back; what stays when one of them fails.
GIVES_BACK = {"cuMemUnmap": {"mapping"}, "cuMemAddressFree": {"range"}, "cuMemRelease": {"handle"},
              "cuMemFreeHost": {"pinned"}, "cuMemFree": {"memory"}, "cuDevicePrimaryCtxRelease": {"context"},
              "cuStreamDestroy": {"stream"}, "cuModuleUnload": {"module"}, "cuEventDestroy": {"event"},
              "cuMemHostUnregister": {"registered"}, "cuIpcCloseMemHandle": {"opened"}}
# What peal can do without: names for people; it looks once more at what has failed already.
OPTIONAL = {"cuDeviceGetName", "cuDeviceGetPCIBusId", "cuDeviceGetUuid", "cuDeviceGetAttribute", "cuCtxGetCurrent",
            "cuMemGetInfo"}


def with_driver(folder=NEW, devices=1, **more):
    """The environment, and the file that gets the record."""
    path = os.path.join(tempfile.mkdtemp(dir=FOLDER.name), "record")
    env = common.environment(LD_LIBRARY_PATH=folder, STANDIN_DEVICES=str(devices), STANDIN_RECORD=path, **more)
    return env, path


def lines_of(path):
    with open(path, encoding="ascii") as record:
        return [line.strip() for line in record]


def left(record):
    """Kinds of things that were not given back."""
    return {line.split()[1] for line in record if line.startswith("left")}


def bad(record):
    """What a driver would refuse, or what is undefined."""
    return [line for line in record if line.startswith("bad")]


def only(record, names):
    return [line for line in record if line in names]


def findings(env):
    code, out, err = common.peal_json("doctor", "--json", env=env)
    assert code == 0, err
    return {item["name"]: (item["state"], item["text"]) for item in out["findings"]}
