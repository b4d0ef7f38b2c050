package results

import "reflect"

// clone returns a copy that shares no memory with v, as far as exported fields lead.
func clone[T any](v T) T {
	detach(reflect.ValueOf(&v).Elem(), nil)
	return v
}

// Rewritten returns a copy that shares no memory with r, and of which every string, map keys
// included, went through text. It goes by type and not by field, so that a field added to the
// record later is covered too.
func (r *Record) Rewritten(text func(string) string) *Record {
	own := *r
	detach(reflect.ValueOf(&own).Elem(), text)
	return &own
}

// detach replaces whatever v shares with others by copies, with strings made by text unless it is
// nil.
func detach(v reflect.Value, text func(string) string) {
	switch v.Kind() {
	case reflect.String:
		if text != nil {
			v.SetString(text(v.String()))
		}
		return
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanSet() {
				detach(field, text)
			}
		}
		return
	case reflect.Slice, reflect.Map, reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return
		}
	}
	switch v.Kind() {
	case reflect.Slice:
		list := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(list, v)
		v.Set(list)
		if v.Type().Elem().Kind() == reflect.Float64 {
			return // trials may be many
		}
		for i := range v.Len() {
			detach(v.Index(i), text)
		}
	case reflect.Map:
		entries := reflect.MakeMapWithSize(v.Type(), v.Len())
		for at := v.MapRange(); at.Next(); {
			entries.SetMapIndex(detached(at.Key(), text), detached(at.Value(), text))
		}
		v.Set(entries)
	case reflect.Pointer:
		v.Set(detached(v.Elem(), text).Addr())
	case reflect.Interface:
		v.Set(detached(v.Elem(), text))
	}
}

// detached returns a copy of a value in memory of its own.
func detached(v reflect.Value, text func(string) string) reflect.Value {
	own := reflect.New(v.Type()).Elem()
	own.Set(v)
	detach(own, text)
	return own
}
