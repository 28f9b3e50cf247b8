package bolt

import "io/fs"

// links is how many names a file has: one, since Windows does not delete a file
// that is open.
func links(fs.FileInfo) uint64 { return 1 }
