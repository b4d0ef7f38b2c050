package report

import "slices"

// A Group is things that have a key in common.
type Group[K comparable, V any] struct {
	Key     K
	Members []V
}

// Groups are in the order in which the first member of each came.
type Groups[K comparable, V any] []Group[K, V]

// Add puts a member into the group of a key.
func (g *Groups[K, V]) Add(key K, member V) {
	i := slices.IndexFunc(*g, func(x Group[K, V]) bool { return x.Key == key })
	if i < 0 {
		i = len(*g)
		*g = append(*g, Group[K, V]{Key: key})
	}
	(*g)[i].Members = append((*g)[i].Members, member)
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
