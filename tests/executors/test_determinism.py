"""Replays with the same key: what ignores its seed or remembers is found out, at a stated cost."""

import faulty_simulators as faulty
import numpy as np
import pytest

from saddleback.errors import InputError, SimulatorError
from saddleback.sampling.executors import Joblib, check_determinism


def test_a_good_simulator_is_reproducible():
    source = faulty.source(faulty.uniform)
    found = check_determinism(source, faulty.blocks())
    assert found.reproducible and found.key is None
    assert found.num_blocks == 2 and found.check_calls == 80, "the first and the last block, there and back"
    assert source.model.num_queries == 0, "checks are counted apart"
    assert str(found) == "reproducible (2 blocks drawn again, 80 calls)"


@pytest.mark.parametrize("simulator", [faulty.ignores_its_seed, faulty.Remembers(), faulty.RemembersLast()])
def test_bad_ones_are_not(simulator):
    source = faulty.source(simulator)
    found = check_determinism(source, faulty.blocks())
    assert not found.reproducible
    assert found.key is not None and found.key[0] == 5 and found.key[2] == found.pair
    assert (found.state, found.action) == divmod(found.pair, faulty.A)
    assert found.index is not None and 0 <= found.index < 20
    assert f"pair {found.pair}" in str(found) and str(found.key) in str(found)
    assert source.model.num_queries == 0


def test_the_same_order_would_not_show_everything():
    """Why the way back is needed: in the same order this one repeats itself."""
    simulator = faulty.RemembersLast(last=faulty.S - 1)
    source, blocks = faulty.source(simulator), faulty.blocks()
    ends = [blocks[0], blocks[-1]]
    first, second = ([source.draw(block).next_states for block in ends] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    simulator.last = faulty.S - 1
    assert not check_determinism(source, blocks).reproducible


def test_the_share():
    source, blocks = faulty.source(faulty.uniform), faulty.blocks(40000)
    assert len(blocks) == 180
    assert check_determinism(source, blocks).num_blocks == 2
    found = check_determinism(source, blocks, share=0.05)
    assert found.num_blocks == 9
    assert 2 * 8 * 3136 <= found.check_calls <= 2 * 9 * 4096
    with pytest.raises(InputError, match="`share`"):
        check_determinism(source, blocks, share=0.0)
    assert check_determinism(source, []) == check_determinism(source, [], drawn={})
    assert check_determinism(source, blocks[:1]).num_blocks == 1


def test_against_what_the_run_drew():
    source, blocks = faulty.source(faulty.uniform), faulty.blocks()
    drawn = {block: source.draw(block) for block in blocks}
    found = check_determinism(source, blocks, share=0.5, drawn=drawn)
    assert found.reproducible and found.check_calls == 9 * 20, "one replay a block"
    drawn[blocks[0]].next_states[7] += 1
    found = check_determinism(source, blocks, share=0.5, drawn=drawn)
    assert not found.reproducible and (found.pair, found.index) == (0, 7)


def test_differences_in_signals_count():
    source = faulty.source(faulty.with_signals, num_signals=2)
    block = faulty.blocks()[0]
    draw = source.draw(block)
    draw.signals[3, 1] += 1e-9
    found = check_determinism(source, [block], drawn={block: draw})
    assert not found.reproducible and found.index == 3


def test_elsewhere_and_with_faults():
    source = faulty.source(faulty.ignores_its_seed)
    with Joblib(1) as executor:
        found = check_determinism(source, faulty.blocks(), executor=executor)
        assert not found.reproducible and found.check_calls == 80
        assert check_determinism(faulty.source(faulty.uniform), faulty.blocks(), executor=executor).reproducible
        wrong = faulty.source(faulty.Wrong("outside"))
        with pytest.raises(SimulatorError, match="outside the state space"):
            check_determinism(wrong, faulty.blocks(), share=1.0, executor=executor)
        assert wrong.model.num_queries == 0, "a check that fails leaves the meter alone too"
