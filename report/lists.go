package report

import "slices"

// A Group is things that have a key in common.
type Group[K comparable, V any] struct {
	Key     K
	Members []V
}

// Groups are things by key, in the order in which the first of each came.
type Groups[K comparable, V any] struct {
	List  []Group[K, V]
	index map[K]int
}

// Add puts members into the group of a key.
func (g *Groups[K, V]) Add(key K, members ...V) {
	i, ok := g.index[key]
	if !ok {
		if g.index == nil {
			g.index = map[K]int{}
		}
		i = len(g.List)
		g.index[key] = i
		g.List = append(g.List, Group[K, V]{Key: key})
	}
	g.List[i].Members = append(g.List[i].Members, members...)
}

// AddNew appends to a list what it does not have yet.
func AddNew[T comparable](list []T, more ...T) []T {
	for _, x := range more {
		if !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}
