package results

import "reflect"

// clone returns a copy that shares no memory with v, as far as exported fields lead.
func clone[T any](v T) T {
	detach(reflect.ValueOf(&v).Elem())
	return v
}

// detach replaces whatever v shares with others by copies.
func detach(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanSet() {
				detach(field)
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
			detach(v.Index(i))
		}
	case reflect.Map:
		entries := reflect.MakeMapWithSize(v.Type(), v.Len())
		for at := v.MapRange(); at.Next(); {
			entries.SetMapIndex(at.Key(), detached(at.Value()))
		}
		v.Set(entries)
	case reflect.Pointer:
		v.Set(detached(v.Elem()).Addr())
	case reflect.Interface:
		v.Set(detached(v.Elem()))
	}
}

// detached returns a copy of a value in memory of its own.
func detached(v reflect.Value) reflect.Value {
	own := reflect.New(v.Type()).Elem()
	own.Set(v)
	detach(own)
	return own
}
