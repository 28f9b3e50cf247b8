// Package bolt is oncehttp's default journal: one file, which one process at a
// time has open. oncehttp.Open uses it; [Open] is for programs that share a journal
// between several clients, or read it themselves.
//
// # What is durable when
//
// Begin, Update, Assign and Forget return when their change is on the disk (fdatasync,
// or what the system has for it), and with it all that was on the disk before. Finish
// and MarkReported return at once. They are on the disk with one of the next commits,
// 10 ms later at most on an idle journal, and at Flush and Close, which are nil exactly
// if all that had returned is on the disk. A crash never leaves a change by half. It may
// take a Finish or a MarkReported that has just returned, and leave a Begin after it.
//
// All who wait at the same time share one commit. So many callers cost little more
// than one: what limits them together is how many syncs the disk does in a second,
// times how many callers wait at once.
//
// # Errors, and what to do
//
// Every error names the file. errors.Is tells them apart:
//
//   - [persist.ErrUncertain]: a sync failed, whatever the reason, or the last write of a
//     commit, and it is not known whether the commit is on the disk. So it is where
//     fdatasync finds the disk full, or a quota used up. The journal refuses all
//     further work. Close it and open it again: Open finds out, and brings the commit
//     to the disk or forgets it. Either is final.
//   - An error that is none of these, such as that of a write to a full disk: the change
//     was definitely not written. The journal goes on, and so may the caller. From Flush
//     it says that a Finish is not on the disk yet: it stays visible, and is tried again
//     each 100 ms. From Close it says that it may be lost: then its operation is asked
//     again with the same key. A second Close is nil, whatever the first has returned.
//   - [persist.ErrLocked]: another process, or another Journal of this one, has the
//     file open. Options.LockWait says how long Open waits for that to end.
//   - [ErrFormat]: another version of this package wrote the file.
//   - [persist.ErrCorrupt]: the file, or one record in it, is damaged, or is no journal.
//     A file that Open refuses is not changed. An empty file is damaged too: a journal
//     never is empty, so that something has cut it. If there never was a journal, delete
//     the file.
//   - [persist.ErrGone]: the file was deleted, moved away or replaced while it was
//     open. Begin refuses, a second later at most; what is under way can end. Put
//     the file back, or open the journal at its new path.
//   - [persist.ErrClosed]: the journal was closed.
//
// # What is assumed of the disk
//
// The promise above holds after a power cut if all of this does. What it costs where
// one does not is measured by TestBrokenAssumptions, in images of the file that a power
// cut can leave (docs/reliability.md has the command): a file is refused, or it shows an
// older state, in which acknowledged changes are missing. None has shown a change by half.
//
//   - A flush is honest: what fdatasync has returned for is on the disk, and stays.
//     If no sync does anything, 35 % of the files are refused and 13 % are older;
//     42 % are older where the disk keeps the order of writes. If one sync of four does
//     nothing: 4 % and 5 %.
//   - A page of 4096 bytes, at a multiple of that, is the most that a write under way can
//     spoil. It may hold anything then. If 8 KB are spoilt together, 56 % are refused
//     and 1 % are older; of 16 KB 62 % and 1 %.
//   - What is not being written keeps what it has. Of junk over a page at rest 53 %
//     are refused; 2 % are older, since a damaged page of a commit whose mark is not on the
//     disk yet looks like a commit that was cut off.
//   - A sector of 512 bytes arrives as a whole or not at all. Nothing hangs on it:
//     with sectors of 64 bytes and of one, without junk, no file is refused and none is older.
//   - Pages may arrive in any order, or not at all, until a sync. So may the size of the
//     file and the names in a directory, each by itself.
//   - Where a sync fails, a part has arrived. The kernel may keep the rest, or forget it;
//     a later sync need not write it. A directory's names are written by its next sync.
//   - A lock holds against all who can open the file.
//
// Whole file systems were cut off, too, on a device that keeps the order of writes
// (TestFileSystems): ext4 with data=ordered and with data=writeback, XFS and Btrfs. Processes
// that are killed, and calls that fail, are tried on ext4 and tmpfs. Of APFS, NTFS, ZFS and
// network file systems it is only read that they keep to this. On macOS a sync is
// F_FULLFSYNC.
//
// # The file
//
// The file is created with mode 0600, and with its name only once it is complete. A
// crash during that can leave a file NAME.*.tmp beside it, which can be deleted. Each
// Open makes the names durable by which the path leads to the file, before anything is
// acknowledged; Stats.NamesSynced is false where the system or the permissions of a
// directory do not let it, and a power cut may take the name of a new file then. If
// others than owner and group may read or write an existing journal, Open takes
// that from them: it holds requests and answers. It holds no credentials. Package
// persist/seal encrypts requests and answers.
//
// The file says which version of the format it has. Open refuses any other.
//
// Records are kept until Sweep removes them. Space that they leave is used again;
// the file does not become smaller. Open reads all of it once: a million records
// take it one to two seconds, and 30 to 70 bytes of heap each. What is due when is in
// memory, too, so that Run reads only what is due. The file is mapped into
// memory: what was read of it counts as resident, and the system takes it back at need.
//
// The file is in the format of go.etcd.io/bbolt, with its pages in the byte order
// of the machine, so that it can be moved to a machine of the same kind. Nothing
// else may write to it. Do not keep it on a file system whose locks do
// not hold between machines, as with some network file systems.
//
// To copy it, close the journal, or copy a snapshot that the file system makes at one
// moment. A copy with cp while the journal is open is refused or, worse, silently older
// than the journal. Of 150 copies of a journal with 20,000 records 23 were refused and 47 were
// older while one caller began a record each 20 ms, and 98 and 13 while eight callers
// began records without a pause.
//
// # Which version of bbolt
//
// A commit has one sync where bbolt itself has two. That relies on how bbolt uses
// its pages again, which was reviewed in the source of one version, the one that
// this module requires. Where a program is built with another version, or without
// build information, commits have bbolt's own two syncs: as safe, and about half as
// fast for a lone caller. Test binaries have no build information. The first commit after
// Open, and after each failure, has bbolt's own two syncs in any case. A signal that ends one
// of these makes it ErrUncertain; the journal's own sync is tried again.
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
