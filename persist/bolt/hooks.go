package bolt

import (
	"io"
	"io/fs"

	"go.etcd.io/bbolt"
)

// hooks let tests intervene. In a normal build all are nil.
type hooks struct {
	// write is called before the journal itself writes, with the bytes and their place. Its error becomes
	// the error of the write. bbolt's writes do not pass here.
	write func(b []byte, at int64) error
	// commit is called before a commit writes anything. With its error nothing is written.
	commit func() error
	// read wraps the reader through which Open reads the file.
	read func(io.ReaderAt) io.ReaderAt
	// sameFile tells if the open file and the one at the path are one. Nil: os.SameFile.
	sameFile func(mine, there fs.FileInfo) bool
	// bboltVersion is the version of bbolt to go by. Empty: the build information's.
	bboltVersion string
	// logger gets bbolt's messages about opening the file.
	logger bbolt.Logger
}
