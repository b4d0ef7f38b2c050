package corpus

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"relaybench/corpus/scan"
)

// Filter is a NIP-01 filter. A nil list asks for nothing; one that is empty matches no event.
type Filter struct {
	IDs     []ID
	Authors []PubKey
	Kinds   []int
	Tags    []TagFilter // one for each single-letter tag name, in the order of the names
	Since   *int64      // Unix seconds, inclusive
	Until   *int64      // Unix seconds, inclusive
	Limit   *int
}

// TagFilter is one "#x" condition: the event needs a tag of that name with one of the values.
type TagFilter struct {
	Name   byte
	Values []string
}

// Int64 and Int make the pointers that a filter's bounds are.
func Int64(n int64) *int64 { return &n }

// Int makes the pointer that a filter's limit is.
func Int(n int) *int { return &n }

// Matches reports whether the event meets every condition of the filter but its limit.
func (f *Filter) Matches(e *Event) bool {
	if f.Since != nil && e.CreatedAt < *f.Since || f.Until != nil && e.CreatedAt > *f.Until {
		return false
	}
	if f.Kinds != nil && !slices.Contains(f.Kinds, e.Kind) ||
		f.IDs != nil && !slices.Contains(f.IDs, e.ID) ||
		f.Authors != nil && !slices.Contains(f.Authors, e.PubKey) {
		return false
	}
	for _, t := range f.Tags {
		if !slices.ContainsFunc(e.Tags, func(tag Tag) bool {
			return len(tag) > 1 && len(tag[0]) == 1 && tag[0][0] == t.Name && slices.Contains(t.Values, tag[1])
		}) {
			return false
		}
	}
	return true
}

// AppendJSON appends the filter as JSON, always with its fields in the same order.
func (f *Filter) AppendJSON(dst []byte) []byte {
	start := len(dst)
	field := func(name string) {
		if len(dst) > start {
			dst = append(dst, ',')
		} else {
			dst = append(dst, '{')
		}
		dst = AppendString(dst, name)
		dst = append(dst, ':')
	}
	if f.IDs != nil {
		field("ids")
		dst = appendList(dst, f.IDs, func(dst []byte, id ID) []byte { return AppendString(dst, id.String()) })
	}
	if f.Authors != nil {
		field("authors")
		dst = appendList(dst, f.Authors, func(dst []byte, pk PubKey) []byte { return AppendString(dst, pk.String()) })
	}
	if f.Kinds != nil {
		field("kinds")
		dst = appendList(dst, f.Kinds, func(dst []byte, k int) []byte { return strconv.AppendInt(dst, int64(k), 10) })
	}
	for _, t := range f.Tags {
		field("#" + string(rune(t.Name)))
		dst = appendList(dst, t.Values, AppendString)
	}
	if f.Since != nil {
		field("since")
		dst = strconv.AppendInt(dst, *f.Since, 10)
	}
	if f.Until != nil {
		field("until")
		dst = strconv.AppendInt(dst, *f.Until, 10)
	}
	if f.Limit != nil {
		field("limit")
		dst = strconv.AppendInt(dst, int64(*f.Limit), 10)
	}
	if len(dst) == start {
		dst = append(dst, '{')
	}
	return append(dst, '}')
}

func appendList[T any](dst []byte, list []T, element func([]byte, T) []byte) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = element(dst, v)
	}
	return append(dst, ']')
}

// UnknownFieldError is a field of a filter that NIP-01 does not have.
type UnknownFieldError struct{ Field string }

func (e *UnknownFieldError) Error() string { return fmt.Sprintf("unknown filter field %q", e.Field) }

// ParseFilter reads one JSON object as a filter: the fields of NIP-01 with the right types. A field
// that it does not know is an *UnknownFieldError, since leaving it out would widen the answer.
func ParseFilter(text []byte) (Filter, error) {
	s := scanner{Scanner: scan.Scanner{Src: text}}
	var f Filter
	seen := map[string]bool{}
	s.Object(func(name []byte) {
		key := string(name)
		if seen[key] {
			s.Fail("field %q twice", key)
			return
		}
		seen[key] = true
		switch key {
		case "ids":
			f.IDs = readList(&s, func() (id ID) { s.hex(id[:], key); return id })
		case "authors":
			f.Authors = readList(&s, func() (pk PubKey) { s.hex(pk[:], key); return pk })
		case "kinds":
			f.Kinds = readList(&s, func() int { return int(s.Int(math.MaxUint16, "kind")) })
		case "since":
			f.Since = Int64(s.Int(math.MaxInt64/16, key))
		case "until":
			f.Until = Int64(s.Int(math.MaxInt64/16, key))
		case "limit":
			f.Limit = Int(int(s.Int(math.MaxInt32, key)))
		default:
			if len(key) != 2 || key[0] != '#' {
				if s.Err == nil {
					s.Err = &UnknownFieldError{key}
				}
				return
			}
			f.Tags = append(f.Tags, TagFilter{key[1], readList(&s, s.text)})
		}
	})
	s.End()
	if s.Err != nil {
		return Filter{}, s.Err
	}
	slices.SortFunc(f.Tags, func(a, b TagFilter) int { return cmp.Compare(a.Name, b.Name) })
	return f, nil
}

// readList reads an array; an empty one is not nil.
func readList[T any](s *scanner, element func() T) []T {
	list := []T{}
	s.List(func() { list = append(list, element()) })
	return list
}
