package testrun

import "syscall"

// enough is the space for tests, in bytes.
const enough = 512 << 20

// roomy reports whether a file system has space for tests.
func roomy(dir string) bool {
	var stat syscall.Statfs_t
	return syscall.Statfs(dir, &stat) == nil && stat.Bavail*uint64(stat.Bsize) > enough
}
