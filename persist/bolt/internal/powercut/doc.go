// Package powercut builds the files a power cut can leave of a process, from the system calls of the
// process. It is for tests.
//
// [Record] runs a process under strace and returns its calls. A [Disk] is a model of a disk with the
// kernel's memory in front of it. [Disk.Do] makes a call on it. [Disk.Cut] returns the files the disk may
// hold if the power fails now. The model knows nothing of journals.
//
// The model allows the following.
//
//   - Of data written and not synced since, each sector of 512 bytes arrives or not, in any order, and in any
//     of its versions.
//   - A page of 4096 bytes with a sector under way may hold anything.
//   - How long a file is, and each entry of a directory, arrives by itself.
//   - If a sync fails, a part has arrived, perhaps with a page of it as anything. The kernel takes the rest for
//     clean: reads show it, later syncs do not write it. [Disk.Evict] lets the kernel forget such pages.
//   - Data written by a successful sync stays. If the sync of a directory failed, its entries are written by
//     the next one.
package powercut
