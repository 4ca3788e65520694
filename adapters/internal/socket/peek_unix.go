//go:build unix

package socket

import "syscall"

func peekDescriptor(fd uintptr) State {
	var next [1]byte
	n, _, err := syscall.Recvfrom(int(fd), next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	switch {
	case err == syscall.EAGAIN || err == syscall.EWOULDBLOCK || err == syscall.EINTR:
		return Quiet
	case err != nil || n == 0:
		return Closed
	}
	return Data
}
