// Package bolt is oncehttp's default journal. It is one file, opened by one process at a time.
// oncehttp.Open uses it. [Open] is for programs sharing a journal between several clients, or reading it
// themselves.
//
// # Durability
//
// Begin, Update, Assign and Forget return once their change is on the disk (by fdatasync or the system's
// equivalent), together with everything on the disk before. Finish and MarkReported return at once. Their
// changes reach the disk with one of the next commits, at most 10 ms later on an idle journal, and with
// Flush and Close. Flush and Close return nil exactly if the changes of all calls returned before are on
// the disk. A crash never leaves half of a change. It may lose the change of a Finish or a MarkReported
// returned just before, and keep a later Begin.
//
// All callers waiting at the same time share one commit. So many callers cost little more than one. Their
// common limit is the number of syncs the disk does in a second, times the number of callers waiting at
// once.
//
// # Errors
//
// Every error names the file. errors.Is tells them apart:
//
//   - [persist.ErrUncertain]: a sync failed, for any reason, or the last write of a commit failed. It is
//     unknown if the commit is on the disk. A full disk or an exhausted quota found by fdatasync is such a
//     case. The journal refuses all further work. Close it and open it again: Open finds out, and brings the
//     commit to the disk or forgets it. Either is final.
//   - An error matching none of this list, such as the error of a write to a full disk: the change was
//     definitely not written. The journal goes on, and so may the caller. From Flush, such an error means: a
//     Finish is not on the disk yet. It stays visible, and is tried again every 100 ms. From Close, it means:
//     the Finish may be lost. Then its operation is asked again with the same key. A second Close returns nil,
//     regardless of the first one's result.
//   - [persist.ErrLocked]: another process, or another Journal of this process, has the file open.
//     Options.LockWait limits how long Open waits for the lock.
//   - [ErrFormat]: another version of this package wrote the file.
//   - [persist.ErrCorrupt]: the file, or one record in it, is damaged, or the file is no journal. Open does not
//     change a file it refuses. An empty file is damaged, too: a journal is never empty, so something has cut
//     it. If there never was a journal, delete the file.
//   - [persist.ErrGone]: the file was deleted, moved away or replaced while it was open. Begin refuses, at most
//     a second later; operations under way can end. Put the file back, or open the journal at its new path.
//     If a copy of the moment took its place, the first Begin matches persist.ErrUncertain, too: its record is
//     in the old file.
//     If other content was copied over the open file, the error matches persist.ErrUncertain, too, and the
//     journal refuses all further work. Put the right file in place before it is opened again.
//   - [persist.ErrClosed]: the journal was closed.
//
// # Assumptions about the disk
//
// The promise above holds after a power cut if all of the following holds. TestBrokenAssumptions measures
// the cost of a broken assumption, in images of the file as a power cut can leave it (docs/reliability.md
// has the command). A file is refused, or it shows an older state, without some acknowledged changes. None
// has shown half of a change.
//
//   - A flush is honest: once fdatasync has returned, the data is on the disk, and stays there. If no sync does
//     anything, 35 % of the files are refused and 13 % are older. On a disk keeping the order of writes, 42 %
//     are older. If one sync of four does nothing: 4 % and 5 %.
//   - A page of 4096 bytes, at a multiple of 4096, is the most a write under way can spoil. It may hold
//     anything then. If 8 KB are spoilt together, 56 % are refused and 1 % are older; of 16 KB 62 % and 1 %.
//   - Data keeps its content while no write to it is under way. With junk over a page at rest, 53 % are refused
//     and 2 % are older. The reason for the latter: as long as the mark of a commit is not on the disk, a
//     damaged page of it looks like a commit cut off by a crash.
//   - A sector of 512 bytes arrives as a whole or not at all. Nothing hangs on it:
//     with sectors of 64 bytes and of one, without junk, no file is refused and none is older.
//   - Pages may arrive in any order, or not at all, until a sync. So may the size of the
//     file and the names in a directory, each by itself.
//   - If a sync fails, a part has arrived. The kernel may keep the rest, or forget it; a later sync need not
//     write it. A directory's names are written by its next sync.
//   - A lock holds against all programs able to open the file.
//
// Whole file systems were cut off, too, on a device keeping the order of writes (TestFileSystems): ext4
// with data=ordered and with data=writeback, XFS and Btrfs. Killed processes, and failing calls, are tried
// on ext4 and tmpfs. For APFS, NTFS, ZFS and network file systems, only their descriptions were read;
// nothing was tested. On macOS a sync is F_FULLFSYNC.
//
// # The file
//
// The file is created with mode 0600, and gets its name only once it is complete. A crash during creation
// can leave a file NAME.*.tmp beside it; it can be deleted. Before anything is acknowledged, each Open
// makes the names leading from the path to the file durable. If the system or the permissions of a
// directory do not allow this, Stats.NamesSynced is false, and a power cut may take the name of a new file.
// If others than owner and group may read or write an existing journal, Open takes these permissions away:
// the file holds requests and answers. It holds no credentials. Package persist/seal encrypts requests and
// answers.
//
// The file names the version of its format. Open refuses any other version.
//
// Records are kept until Sweep removes them. Their space is used again; the file does not become smaller. A used key
// whose text a sweep has taken out (Record.KeepText) takes 150 bytes at most, and 90 after journal compact.
// Open reads the whole file once: a million records take it one to two seconds, and 30 to 70 bytes of heap
// each. The due times are in memory, too, so Run reads only due records. The file is mapped into memory:
// the parts read count as resident, and the system takes them back at need.
//
// The file is in the format of go.etcd.io/bbolt, with its pages in the byte order of the machine. So it can
// be moved to a machine of the same kind. Nothing else may write to it. Do not keep it on a file system if
// its locks do not hold between machines, as with some network file systems.
//
// To copy it, close the journal, or copy a snapshot made by the file system at one moment. A copy made with
// cp while the journal is open is refused or, worse, silently older than the journal. This was measured
// with 150 copies of a journal with 20,000 records. While one caller began a record every 20 ms, 23 were
// refused and 47 were older. While eight callers began records without a pause, 98 were refused and 13 were
// older.
//
// # The version of bbolt
//
// A commit has one sync; bbolt itself has two. One sync is enough because of how bbolt uses its pages
// again. This was reviewed in the source of one version, the one required by this module. If a program is
// built with another version, or without build information, commits have bbolt's own two syncs. This is as
// safe, and about half as fast for a lone caller. Test binaries have no build information. The first commit
// after Open, and after each failure, has bbolt's own two syncs in any case. A signal ending one of these
// makes it ErrUncertain; the journal's own sync is tried again.
//
// # Reading the source
//
// Each file holds one thing. Begin with journal.go and change.go (the methods for callers), batch.go and
// groupcommit.go (the committer, and the time of a commit), and commit.go (the writing of one batch).
// overwritten.go and place.go notice that the file was overwritten or moved.
// Opening is open.go, recover.go (the choice of the commit that counts) and load.go. The pages of the file
// are read by metapage.go, page.go and pagescan.go; these know nothing of records. layout.go and entry.go
// describe the content of the file, used.go that of a used key; slots.go, dues.go, count.go and index.go hold the
// memory. docs/reliability.md
// lists the tests.
package bolt
