// Package powercut builds the files that a power cut can leave of a process, from the
// system calls that the process has made. It is for tests.
//
// [Record] runs a process under strace and returns its calls. A [Disk] is a model of
// a disk with the kernel's memory in front of it; [Disk.Do] makes a call on it, and
// [Disk.Cut] returns the files that the disk may hold if the power fails now. The
// model knows nothing of journals.
//
// What the model allows:
//
//   - Of what was not synced since it was written, each sector of 512 bytes arrives
//     or not, in any order, and in any of the versions that it had.
//   - A page of 4096 bytes of which a sector is under way may hold anything.
//   - How long a file is, and each entry of a directory, arrives by itself.
//   - Where a sync fails, a part has arrived, a page of it as anything perhaps, and the
//     kernel takes the rest for clean: reads show it, later syncs do not write it.
//     [Disk.Evict] lets the kernel forget such pages.
//   - What a sync that succeeded has written stays. Entries of a directory whose sync
//     failed are written by the next one.
package powercut
