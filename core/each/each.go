// Package each makes one list of another, which package slices does not.
package each

import "fmt"

// Map returns what f returns of each item, in their order: a list that is not nil.
func Map[T, U any](list []T, f func(T) U) []U {
	all := make([]U, len(list))
	for i := range list {
		all[i] = f(list[i])
	}
	return all
}

// MapRef is Map for a function that takes the place of an item.
func MapRef[T, U any](list []T, f func(*T) U) []U {
	all := make([]U, len(list))
	for i := range list {
		all[i] = f(&list[i])
	}
	return all
}

// Strings returns texts of any type as strings.
func Strings[T ~string](list []T) []string {
	return Map(list, func(text T) string { return string(text) })
}

// Texts returns items as texts.
func Texts[T fmt.Stringer](list []T) []string { return Map(list, T.String) }
