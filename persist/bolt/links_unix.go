//go:build unix

package bolt

import (
	"io/fs"
	"syscall"
)

// links returns the number of names (hard links) that a file has.
func links(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink)
	}
	return 1
}
