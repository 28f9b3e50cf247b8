package testrun

import "syscall"

// enough is the space for tests, in bytes.
const enough = 512 << 20

// roomy reports whether the file system of dir has more than enough bytes free.
func roomy(dir string) bool {
	var stat syscall.Statfs_t
	return syscall.Statfs(dir, &stat) == nil && stat.Bavail*uint64(stat.Bsize) > enough
}
