"""The LT-tree as the paper describes it, to measure our own against: a red-black tree with LT-sets.

A node holds a value, the ids with that value and its LT-set: the ids in its left subtree. Insert and delete correct
the LT-sets on the way down; rotations correct the one set that changes. Not used by the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from pyroaring import BitMap

from weever_stream.model.errors import InvariantError


class Node:
    """One distinct value."""

    __slots__ = ("ids", "left", "lt", "parent", "red", "right", "value")

    left: Node
    right: Node
    parent: Node

    def __init__(self, value: Any, nil: Node | None) -> None:
        self.value = value
        self.ids, self.lt = BitMap(), BitMap()
        self.left = self.right = self.parent = nil or self
        self.red = nil is not None


class PaperLTTree:
    """Red-black tree with LT-sets; the same questions and changes as `LTTree`, one id at a time.

    Sets that it hands out belong to the caller.

    >>> tree = PaperLTTree([(0, 50), (1, 25), (2, 10), (3, 25)])
    >>> tree.smaller(50), tree.equal(25), len(tree)
    (BitMap([1, 2, 3]), BitMap([1, 3]), 3)
    """

    def __init__(self, items: Iterable[tuple[int, Any]] = ()) -> None:
        """Insert the items one by one: the paper knows no other way. O(n log d)."""
        self._nil = Node(None, None)
        self._root = self._nil
        self._distinct = 0
        self.ids, self.nulls = BitMap(), BitMap()
        for id_, value in items:
            self.insert(id_, value)

    @classmethod
    def bulk(cls, sets: Mapping[Any, BitMap]) -> PaperLTTree:
        """Build from all ids of each value; the sets now belong to the tree. O(d log d) compares, O(d) unions.

        Halving the sorted values fills every level but the last; with that one red, all ways have as many black nodes.

        >>> tree = PaperLTTree.bulk({2: BitMap([0]), 1: BitMap([1, 2])})
        >>> tree.smaller(2), tree.ids
        (BitMap([1, 2]), BitMap([0, 1, 2]))
        """
        tree = cls()
        values = sorted(sets)
        full_levels = (len(values) + 1).bit_length() - 1

        def build(low: int, high: int, depth: int) -> tuple[Node, BitMap]:
            if low == high:
                return tree._nil, BitMap()
            middle = (low + high) // 2
            node = Node(values[middle], tree._nil)
            node.ids, node.red = sets[values[middle]], depth == full_levels
            node.left, node.lt = build(low, middle, depth + 1)
            node.right, right = build(middle + 1, high, depth + 1)
            node.left.parent = node.right.parent = node
            return node, BitMap.union(node.lt, node.ids, right)

        tree._root, tree.ids = build(0, len(values), 0)
        tree._root.parent = tree._nil.parent = tree._nil
        tree._distinct = len(values)
        return tree

    def __len__(self) -> int:
        """Number of distinct values. O(1)."""
        return self._distinct

    def smaller(self, value: Any) -> BitMap:
        """Ids with a smaller value (the paper's algorithm 1). O(log d) unions."""
        node, nil, result = self._root, self._nil, BitMap()
        while node is not nil:
            if value > node.value:
                result |= node.ids
                result |= node.lt
                node = node.right
            elif value == node.value:
                result |= node.lt
                break
            else:
                node = node.left
        return result

    def smaller_or_equal(self, value: Any) -> BitMap:
        """Ids with a smaller or equal value. O(log d) unions."""
        return self.smaller(value) | self.equal(value)

    def equal(self, value: Any) -> BitMap:
        """Ids with this value. O(log d)."""
        node = self._find(value)
        return node.ids | BitMap()

    def insert(self, id_: int, value: Any) -> None:
        """Add an id; wherever the way goes left, the LT-set takes it too. O(log d) bits set, at most 2 rotations."""
        if id_ in self.ids or id_ in self.nulls:
            raise InvariantError(f"id {id_} is already held")
        if value is None:
            self.nulls.add(id_)
            return
        self.ids.add(id_)
        node, parent = self._root, self._nil
        while node is not self._nil and node.value != value:
            parent = node
            if value < node.value:
                node.lt.add(id_)
                node = node.left
            else:
                node = node.right
        if node is self._nil:
            self._attach(id_, value, parent)
        else:
            node.ids.add(id_)

    def delete(self, id_: int, value: Any) -> None:
        """Remove an id held with this value, and its node if it was the last. O(log d), at most 3 rotations."""
        if id_ not in (self.nulls if value is None else self._find(value).ids):
            raise InvariantError(f"id {id_} is not held with value {value!r}")
        if value is None:
            self.nulls.remove(id_)
            return
        self.ids.remove(id_)
        node = self._root
        while node.value != value:
            if value < node.value:
                node.lt.remove(id_)
                node = node.left
            else:
                node = node.right
        node.ids.remove(id_)
        if not node.ids:
            self._detach(node)

    def check(self) -> None:
        """Raise InvariantError unless order, colours, LT-sets and ids are right. O(n log d)."""
        seen: list[Any] = []
        _, ids = self._check_node(self._root, seen)
        ordered = all(a < b for a, b in pairwise(seen))
        if not ordered or len(seen) != self._distinct or ids != self.ids or self._root.red:
            raise InvariantError(f"order, count, ids or root colour: {seen[:50]}")
        if self._nil.red or self._nil.ids or self._nil.lt:
            raise InvariantError("the sentinel was changed")

    # -- the red-black tree -------------------------------------------------------------------------------------

    def _find(self, value: Any) -> Node:
        node = self._root
        while node is not self._nil and node.value != value:
            node = node.left if value < node.value else node.right
        return node

    def _attach(self, id_: int, value: Any, parent: Node) -> None:
        """Add a leaf. It holds its id before it is rotated: a rotation moves ids from LT-set to LT-set."""
        node = Node(value, self._nil)
        node.ids.add(id_)
        node.parent = parent
        if parent is self._nil:
            self._root = node
        elif value < parent.value:
            parent.left = node
        else:
            parent.right = node
        self._distinct += 1
        self._after_insert(node)

    def _detach(self, node: Node) -> None:
        """Remove an empty node; with two children its successor's content moves up first."""
        self._distinct -= 1
        if node.left is not self._nil and node.right is not self._nil:
            node = self._move_up_successor(node)
        child = node.left if node.left is not self._nil else node.right
        self._replace(node, child)
        if not node.red:
            self._after_delete(child)
        self._nil.parent = self._nil

    def _move_up_successor(self, node: Node) -> Node:
        """Take over the next greater value; the LT-sets on the way to it lose its ids."""
        successor = node.right
        while successor.left is not self._nil:
            successor = successor.left
        above = successor.parent
        while above is not node:
            above.lt -= successor.ids
            above = above.parent
        node.value, node.ids = successor.value, successor.ids
        return successor

    def _replace(self, node: Node, other: Node) -> None:
        if node.parent is self._nil:
            self._root = other
        elif node is node.parent.left:
            node.parent.left = other
        else:
            node.parent.right = other
        other.parent = node.parent

    def _rotate_left(self, node: Node) -> None:
        """The right child moves up and gets node with its left subtree below it: its LT-set grows by these."""
        up = node.right
        node.right = up.left
        if up.left is not self._nil:
            up.left.parent = node
        self._replace(node, up)
        up.left, node.parent = node, up
        up.lt |= node.lt
        up.lt |= node.ids

    def _rotate_right(self, node: Node) -> None:
        """The left child moves up; node's LT-set loses it and its left subtree."""
        up = node.left
        node.left = up.right
        if up.right is not self._nil:
            up.right.parent = node
        self._replace(node, up)
        up.right, node.parent = node, up
        node.lt -= up.lt
        node.lt -= up.ids

    def _after_insert(self, node: Node) -> None:
        while node.parent.red:
            parent, grand = node.parent, node.parent.parent
            left_side = parent is grand.left
            uncle = grand.right if left_side else grand.left
            if uncle.red:
                parent.red = uncle.red = False
                grand.red = True
                node = grand
                continue
            if node is (parent.right if left_side else parent.left):
                self._rotate(parent, left=left_side)
                parent = node
            parent.red, grand.red = False, True
            self._rotate(grand, left=not left_side)
            break
        self._root.red = False

    def _after_delete(self, node: Node) -> None:
        while node is not self._root and not node.red:
            parent = node.parent
            left_side = node is parent.left
            sibling = self._black_sibling(parent, left_side)
            near, far = (sibling.left, sibling.right) if left_side else (sibling.right, sibling.left)
            if not near.red and not far.red:
                sibling.red = True
                node = parent
                continue
            if not far.red:
                near.red, sibling.red = False, True
                self._rotate(sibling, left=not left_side)
                far, sibling = sibling, near
            sibling.red, parent.red, far.red = parent.red, False, False
            self._rotate(parent, left=left_side)
            node = self._root
        node.red = False

    def _black_sibling(self, parent: Node, left_side: bool) -> Node:
        sibling = parent.right if left_side else parent.left
        if sibling.red:
            sibling.red, parent.red = False, True
            self._rotate(parent, left=left_side)
            sibling = parent.right if left_side else parent.left
        return sibling

    def _rotate(self, node: Node, *, left: bool) -> None:
        if left:
            self._rotate_left(node)
        else:
            self._rotate_right(node)

    def _check_node(self, node: Node, seen: list[Any]) -> tuple[int, BitMap]:
        """Black height and ids of a subtree; appends its values in order."""
        if node is self._nil:
            return 0, BitMap()
        left_height, left = self._check_node(node.left, seen)
        seen.append(node.value)
        right_height, right = self._check_node(node.right, seen)
        if left_height != right_height or (node.red and (node.left.red or node.right.red)):
            raise InvariantError(f"colours at {node.value!r}")
        if node.lt != left or not node.ids:
            raise InvariantError(f"LT-set or ids at {node.value!r}: {node.lt} instead of {left}")
        return left_height + (not node.red), left | node.ids | right
