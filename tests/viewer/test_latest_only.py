"""Fifty moves a second from two tabs: only the newest of each is computed, and memory stays flat."""

import asyncio
import threading
import time

import pytest

from certiseg.viewer.latest_only import _MOST_LANES, LatestOnly, Overtaken

QUERY = "image=scene%200&sigma=0.25&n=100&method=sets&alpha=0.01&correction=bonferroni&test=fixed"


def test_overtaken_moves_are_never_computed():
    done, order = [], LatestOnly()

    async def one(lane, request):
        def work():
            time.sleep(0.02)
            done.append((lane, request))
            return request

        try:
            return await order.run(lane, request, work)
        except Overtaken:
            return None

    async def moves():
        tasks = []
        for request in range(100):
            tasks += [asyncio.create_task(one(lane, request)) for lane in ("left", "right")]
            await asyncio.sleep(0.002)
        return await asyncio.gather(*tasks)

    results = asyncio.run(moves())
    assert results[-2:] == [99, 99]
    for lane in ("left", "right"):
        mine = [request for name, request in done if name == lane]
        assert mine == sorted(mine)
        assert mine[-1] == 99
        assert len(mine) < 40
    assert order.computed == len(done)


def test_lanes_do_not_pile_up():
    order = LatestOnly()

    async def visit():
        for number in range(500):
            await order.run(f"tab {number}", 0, lambda: None)

    asyncio.run(visit())
    assert len(order._lanes) == _MOST_LANES


def test_a_failing_move_does_not_block_its_lane():
    order = LatestOnly()

    async def visit():
        with pytest.raises(ZeroDivisionError):
            await order.run("tab", 0, lambda: 1 / 0)
        return await order.run("tab", 1, lambda: "fine")

    assert asyncio.run(visit()) == "fine"


def test_two_tabs_of_sliders_on_a_real_server(served, monkeypatch):
    psutil = pytest.importorskip("psutil")
    url, viewer = served
    quick, sizes, failures = viewer._certify, [], []
    monkeypatch.setattr(viewer, "_certify", lambda choice: time.sleep(0.1) or quick(choice))

    def drag(lane):
        waiting = []
        for move in range(100):
            moved = f"&tau={0.5 + move / 250}&lane={lane}&request={move}"
            thread = threading.Thread(target=ask, args=(f"{url}api/map?{QUERY}{moved}", failures))
            thread.start()
            waiting.append(thread)
            time.sleep(0.02)
        for thread in waiting:
            thread.join()

    for _ in range(3):
        tabs = [threading.Thread(target=drag, args=(f"{lane}{time.time()}",)) for lane in "ab"]
        for tab in tabs:
            tab.start()
        for tab in tabs:
            tab.join()
        sizes.append(psutil.Process().memory_info().rss)
    assert failures == []
    assert 6 <= viewer.latest_only.computed < 300  # of 600 moves
    assert sizes[-1] - sizes[0] < 40 << 20


def ask(address, failures):
    from urllib.request import urlopen

    try:
        with urlopen(address, timeout=30) as answer:
            if answer.status not in (200, 204):
                failures.append(answer.status)
            answer.read()
    except OSError as error:
        failures.append(error)
