package bolt

import (
	"io"

	"go.etcd.io/bbolt"
)

// hooks are where tests step in. In a normal build all are nil.
type hooks struct {
	// write is called before the journal itself writes, with what it is to write
	// where. Its error is what the write fails with. bbolt's writes do not pass here.
	write func(b []byte, at int64) error
	// commit is called before a commit writes anything. With its error nothing is written.
	commit func() error
	// read wraps what Open reads the file through.
	read func(io.ReaderAt) io.ReaderAt
	// bboltVersion is the version of bbolt to go by. Empty: the build information's.
	bboltVersion string
	// logger is what bbolt tells how it opens the file.
	logger bbolt.Logger
}
