// Package bolt is oncehttp's default journal: one file, which one process at a
// time has open. oncehttp.Open uses it; [Open] is for programs that share a journal
// between several clients, or read it themselves.
//
// # What is durable when
//
// Begin, Update and Forget return when their change is on the disk (fdatasync, or
// what the system has for it). Finish and MarkReported return at once. They are on
// the disk with one of the next commits, 10 ms later at most on an idle journal,
// and at Flush and Close. A crash never leaves a change by half, and never one
// change without another that was acknowledged before it.
//
// All who wait at the same time share one commit. So many callers cost little more
// than one: what limits them together is how many syncs the disk does in a second,
// times how many callers wait at once.
//
// # Errors, and what to do
//
// Every error names the file. errors.Is tells them apart:
//
//   - [persist.ErrUncertain]: a commit failed, and it is not known whether it is on the
//     disk. The journal refuses all further work. Close it and open it again: Open
//     finds out, and brings the commit to the disk or forgets it. Either is final.
//   - An error that is none of those below, such as a full disk: the change was
//     definitely not written. The journal goes on, and so may the caller.
//   - [persist.ErrLocked]: another process, or another Journal of this one, has the
//     file open. Options.LockWait says how long Open waits for that to end.
//   - [persist.ErrCorrupt]: the file, or one record in it, is damaged, is no journal,
//     or has another version's format. A file that Open refuses is not changed. An
//     empty file is damaged too: a journal never is empty, so that something has cut
//     it. If there never was a journal, delete the file.
//   - [persist.ErrGone]: the file was deleted, moved away or replaced while it was
//     open. Begin refuses, a second later at most; what is under way can end. Put
//     the file back, or open the journal at its new path.
//   - [persist.ErrClosed]: the journal was closed.
//
// # The file
//
// The file is created with mode 0600, and with its name only once it is complete. A
// crash during that can leave a file NAME.*.tmp beside it, which can be deleted. If
// others than owner and group may read or write an existing journal, Open takes
// that from them: it holds requests and answers. It holds no credentials. Package
// persist/seal encrypts requests and answers.
//
// The format of a file is version 1 until a record with kept fields or a server's
// token comes (persist.Record.KeptFields, ServerToken), and version 2 from then on. This package reads both;
// code from before there was version 2 refuses such a file.
//
// Records are kept until Sweep removes them. Space that they leave is used again;
// the file does not become smaller. Open reads all of it once: a million records
// take it one to two seconds, and 30 to 70 bytes of heap each. What is due when is in
// memory, too, so that Run reads only what is due. The file is mapped into
// memory: what was read of it counts as resident, and the system takes it back at need.
//
// The file is in the format of go.etcd.io/bbolt, with its pages in the byte order
// of the machine, so that it can be moved to a machine of the same kind. Nothing
// else may write to it. To copy it, close the journal, or copy a snapshot that the
// file system makes at one moment. Do not keep it on a file system whose locks do
// not hold between machines, as with some network file systems.
//
// # Which version of bbolt
//
// A commit has one sync where bbolt itself has two. That relies on how bbolt uses
// its pages again, which was reviewed in the source of one version, the one that
// this module requires. Where a program is built with another version, or without
// build information, commits have bbolt's own two syncs: as safe, and about half as
// fast for a lone caller. Test binaries have no build information.
//
// # Reading the source
//
// Each file holds one thing. Begin with journal.go and change.go (what a caller
// calls), batch.go and groupcommit.go (who commits, and when), commit.go (how one
// batch is written). Opening is open.go, recover.go (which commit counts) and
// load.go. The pages of the file are read by metapage.go, page.go and pagescan.go,
// which know nothing of records. layout.go and entry.go say what is in the file,
// slots.go, dues.go and index.go what is in memory. docs/reliability.md lists what is tested.
package bolt
