package bolt

import "io/fs"

// links returns the number of a file's names: one, since Windows does not delete an open file.
func links(fs.FileInfo) uint64 { return 1 }
