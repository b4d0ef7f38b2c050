package corpus

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// forget gives back the memory that holds part of a mapped file. The part stays mapped: whoever
// reads it again gets it from the file, or from the system's cache of it. Others may be reading it
// meanwhile.
func forget(part []byte) {
	if len(part) == 0 {
		return
	}
	// The system takes whole pages. Those at the ends are shared with the neighbours, which read
	// them again if need be.
	page := uintptr(os.Getpagesize())
	before := uintptr(unsafe.Pointer(unsafe.SliceData(part))) & (page - 1)
	whole := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(part)), -int(before))), len(part)+int(before))
	_ = unix.Madvise(whole, unix.MADV_DONTNEED) // advice: without it, more memory is used
}
