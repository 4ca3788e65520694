//go:build !unix

package socket

func peek(uintptr) State { return Unknown }
