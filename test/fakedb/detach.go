package fakedb

import (
	"reflect"
	"time"
)

// detached returns a copy of a row that shares no memory with it, as a database returns it: times
// in UTC with microseconds, nil for an empty list. It copies the exported fields of structs; values
// with unexported ones, for example names, cannot be changed.
func detached[R any](r R) R {
	detach(reflect.ValueOf(&r).Elem())
	return r
}

// detach replaces what an addressable value refers to by copies.
func detach(v reflect.Value) {
	if at, ok := v.Addr().Interface().(*time.Time); ok {
		*at = storedTime(*at)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				detach(v.Field(i))
			}
		}
	case reflect.Slice:
		detachSlice(v)
	case reflect.Map:
		detachMap(v)
	case reflect.Pointer:
		if !v.IsNil() {
			own := reflect.New(v.Type().Elem())
			own.Elem().Set(v.Elem())
			detach(own.Elem())
			v.Set(own)
		}
	}
}

func detachSlice(v reflect.Value) {
	if v.Len() == 0 {
		v.SetZero()
		return
	}
	own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(own, v)
	if v.Type().Elem().Kind() == reflect.Struct {
		for i := range own.Len() {
			detach(own.Index(i))
		}
	}
	v.Set(own)
}

func detachMap(v reflect.Value) {
	if v.Len() == 0 {
		v.SetZero()
		return
	}
	own := reflect.MakeMapWithSize(v.Type(), v.Len())
	for entry := v.MapRange(); entry.Next(); {
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(entry.Value())
		detach(value)
		own.SetMapIndex(entry.Key(), value)
	}
	v.Set(own)
}

// storedTime returns a time as databases store it: in UTC, with microseconds, without a monotonic
// clock. The zero time does not change.
func storedTime(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}
