package bolt

import "io"

// hooks are where tests look on and step in. In a normal build all are nil, which
// costs one comparison per step of a commit.
type hooks struct {
	// step is called at each named step of a creation, an open, a commit and a
	// close. A test ends the process there.
	step func(name string)
	// write is called before the journal itself writes, with what it is to write
	// where. Its error is what the write fails with. bbolt's writes do not pass here.
	write func(b []byte, at int64) error
	// read wraps what Open reads the file through.
	read func(io.ReaderAt) io.ReaderAt
	// bboltVersion is the version of bbolt to go by. Empty: the build information's.
	bboltVersion string
}

// The named steps, in the order in which they come.
const (
	stepCreateMade    = "create: the temporary file is made"
	stepCreateWritten = "create: it is written"
	stepCreateSynced  = "create: it is synced"
	stepCreateLinked  = "create: it has its name"
	stepCreateRemoved = "create: the temporary name is removed"
	stepCreateDone    = "create: the directory is synced"

	stepOpenLocked       = "open: the file is locked"
	stepOpenVerified     = "open: the newest commit is whole, but not marked"
	stepOpenRewritten    = "open: its pages are written again"
	stepOpenSynced       = "open: they are synced"
	stepOpenForgotten    = "open: the newest commit was cut off, and its meta page is wiped"
	stepOpenForgetSynced = "open: the wiped meta page is synced"
	stepOpenMarked       = "open: the mark is written"
	stepOpenMarkSynced   = "open: the mark is synced"
	stepOpenGiven        = "open: bbolt has the file"

	stepCommitBegun        = "commit: the transaction is begun"
	stepCommitNumbered     = "commit: the number of another attempt is written"
	stepCommitNumberSynced = "commit: the number is synced"
	stepCommitApplied      = "commit: the changes are applied"
	stepCommitWritten      = "commit: pages and meta page are written"
	stepCommitSynced       = "commit: they are synced"
	stepCommitMarked       = "commit: the mark is written"

	stepCloseCommitted  = "close: what was queued is committed"
	stepCloseMarkSynced = "close: the mark is synced"
	stepCloseDone       = "close: the file is closed"
)

// step tells a test that the journal has come to a named step.
func (j *Journal) step(name string) {
	if j.hooks.step != nil {
		j.hooks.step(name)
	}
}
