package powercut

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

const (
	sectorSize = 512
	pageSize   = 4096
)

// Files are the files below a directory, by name. A name may have the content of another: two names of one
// file. A name ending with a slash is the name of a directory. The content of a symbolic link is [Link].
type Files map[string][]byte

const linkMark = "\x00link to\x00"

// Link returns the content of a file that stands for a symbolic link to target, since Files know only names and contents.
func Link(target string) []byte { return []byte(linkMark + target) }

// Target returns the target of a symbolic link from its content, as Link makes it. ok is false for the content of any other file.
func Target(content []byte) (target string, ok bool) {
	return strings.CutPrefix(string(content), linkMark)
}

// Disk is a model of a disk below one directory, and of its content in the kernel's memory. Not safe for
// concurrent use.
type Disk struct {
	root    string
	names   map[string]*file // as the kernel shows them
	durable map[string]*file // as they are on the disk
	moves   []move           // of entries, since their directory was last synced
	open    map[int]opened
	failed  bool
}

// opened is an open file.
type opened struct {
	file *file // nil for a directory
	dir  string
	end  int64 // the place of the next write without a place of its own
}

// move is one change of a directory, whole or not at all.
type move struct {
	dir  string
	name string
	file *file // nil: the name goes
	old  string
}

// file is the content of a file.
type file struct {
	memory []byte // as the kernel shows it
	disk   []byte // as it is on the disk for certain
	flight []version
}

// version is one change of a file. It may have arrived.
type version struct {
	at    int64
	data  []byte
	size  int64 // of the file after it
	sizes bool  // it changes the size
}

// touched calls visit for each unit, a sector or a page, that the write v has changed. unit is its length in bytes. from and to are the beginning and the
// end of the unit in the file; the last one ends with the file.
func (v *version) touched(unit int64, visit func(from, to int64)) {
	for at := v.at / unit * unit; at < v.at+int64(len(v.data)); at += unit {
		visit(at, min(at+unit, v.size))
	}
}

// NewDisk returns a simulated disk with these files, all of them durable. The disk has the files below the directory root.
func NewDisk(root string, files Files) *Disk {
	d := &Disk{root: path.Clean(root), names: map[string]*file{}, durable: map[string]*file{}, open: map[int]opened{}}
	for name, content := range files {
		f := &file{memory: slices.Clone(content), disk: slices.Clone(content)}
		d.names[name], d.durable[name] = f, f
	}
	return d
}

// Clone returns a copy: a change of either disk does not affect the other. Two names of one file are two names of one file in the copy, too.
func (d *Disk) Clone() *Disk {
	copied := map[*file]*file{nil: nil}
	clone := func(f *file) *file {
		if c, found := copied[f]; found {
			return c
		}
		c := &file{slices.Clone(f.memory), slices.Clone(f.disk), slices.Clone(f.flight)}
		copied[f] = c
		return c
	}
	c := &Disk{root: d.root, names: map[string]*file{}, durable: map[string]*file{}, open: map[int]opened{}, failed: d.failed}
	for name, f := range d.names {
		c.names[name] = clone(f)
	}
	for name, f := range d.durable {
		c.durable[name] = clone(f)
	}
	for _, m := range d.moves {
		m.file = clone(m.file)
		c.moves = append(c.moves, m)
	}
	for fd, o := range d.open {
		o.file = clone(o.file)
		c.open[fd] = o
	}
	return c
}

// Memory returns the files as the kernel shows them, unsynced changes included: they are left if the process ends and the power stays.
func (d *Disk) Memory() Files {
	files := Files{}
	for name, f := range d.names {
		files[name] = f.memory
	}
	return files
}

// Exit closes the files opened by the process. Its writes stay under way.
func (d *Disk) Exit() { clear(d.open) }

// SyncFailed reports whether the sync of a file has failed. Then the kernel may show data missing on the
// disk.
func (d *Disk) SyncFailed() bool { return d.failed }

// name returns a path relative to the root of the disk, "." for the root itself. It returns false for a path that is not below the root.
func (d *Disk) name(p string) (string, bool) {
	if p = path.Clean(p); p == d.root {
		return ".", true
	}
	return strings.CutPrefix(p, d.root+"/")
}

// follow returns the name at the end of a chain of symbolic links. A name that is no link is returned as it is. After 40 links it stops, as a system does:
// the links may form a circle.
func (d *Disk) follow(name string) string {
	for range 40 {
		f := d.names[name]
		if f == nil {
			break
		}
		target, isLink := Target(f.memory)
		if !isLink {
			break
		}
		name = path.Join(path.Dir(name), target)
	}
	return name
}

// Do applies one recorded system call to the disk. Failed calls change nothing, but for a failed sync: r draws the part of the writes that arrives
// then.
func (d *Disk) Do(c *Call, r *rand.Rand) {
	if o, found := d.open[c.FD]; found && c.Name != "openat" {
		d.doOpen(c, o, r)
		return
	}
	name, below := d.name(c.Path)
	if !below || c.Failed != "" {
		return
	}
	switch c.Name {
	case "symlinkat":
		content := Link(c.Other)
		d.move(move{dir: path.Dir(name), name: name, file: &file{memory: content, disk: content}})
	case "openat":
		name = d.follow(name)
		f := d.names[name]
		switch {
		case f == nil && c.Create:
			f = &file{}
			d.move(move{dir: path.Dir(name), name: name, file: f})
		case f == nil: // names has files only: this is a directory
			d.open[c.FD] = opened{dir: name}
			return
		}
		d.open[c.FD] = opened{file: f}
	case "unlinkat":
		d.move(move{dir: path.Dir(name), name: name})
	case "linkat", "renameat", "renameat2":
		to, below := d.name(c.Other)
		if !below {
			return
		}
		m := move{dir: path.Dir(to), name: to, file: d.names[name]}
		if c.Name != "linkat" {
			m.old = name
		}
		d.move(m)
	}
}

// doOpen is Do for a call on an open file descriptor: o is the file or directory behind it. A failed sync leaves an unknown part of the writes on the
// disk, and the kernel takes all pages for clean.
func (d *Disk) doOpen(c *Call, o opened, r *rand.Rand) {
	switch f := o.file; {
	case c.Name == "close":
		delete(d.open, c.FD)
	case f == nil:
		if c.Name == "fsync" && c.Failed == "" {
			d.syncDir(o.dir)
		}
	case c.Name == "fsync" || c.Name == "fdatasync":
		if c.Failed != "" {
			f.disk, d.failed = f.cut(Choice{r: r, arrive: r.Float64(), one: r.IntN(8) - 4}), true // sometimes with one page of junk
		} else {
			f.sync()
		}
		f.flight = nil
	case c.Failed != "":
	case c.Name == "ftruncate":
		f.write(version{size: c.At})
	case c.Name == "pwrite64":
		f.write(version{at: c.At, data: c.Data, size: max(int64(len(f.memory)), c.At+int64(len(c.Data)))})
	case c.Name == "write":
		f.write(version{at: o.end, data: c.Data, size: max(int64(len(f.memory)), o.end+int64(len(c.Data)))})
		o.end += int64(len(c.Data))
		d.open[c.FD] = o
	}
}

// Changes reports whether a call changes the files, the names, or the content that a later power failure leaves. After any other call a power failure
// has the same results as before it.
func (d *Disk) Changes(c *Call) bool {
	if o, found := d.open[c.FD]; found && c.Name != "openat" {
		return c.Name != "close" && c.Name != "fchmod" && c.Name != "flock" && c.Name != "mmap" && (o.file != nil || c.Name == "fsync")
	}
	_, below := d.name(c.Path)
	return below && c.Failed == "" && c.Name != "mmap" && (c.Name != "openat" || c.Create)
}

// move makes a change of a directory, in memory: it is durable only after a sync of the directory.
func (d *Disk) move(m move) {
	m.apply(d.names)
	d.moves = append(d.moves, m)
}

// apply makes the change of a name, such as that of a rename, in a set of names: the old name goes, and the new one leads to the file, or is deleted
// if there is no file.
func (m *move) apply(names map[string]*file) {
	if m.old != "" {
		delete(names, m.old)
	}
	if m.file == nil {
		delete(names, m.name)
		return
	}
	names[m.name] = m.file
}

// syncDir makes the waiting changes of names in a directory durable, and takes them out of the list.
func (d *Disk) syncDir(dir string) {
	d.moves = slices.DeleteFunc(d.moves, func(m move) bool {
		if m.dir != dir {
			return false
		}
		m.apply(d.durable)
		return true
	})
}

// sync makes the unsynced writes durable. It writes the memory's content of the touched sectors only: what an earlier failed sync has lost is not
// written again, as with a kernel that takes such pages for clean.
func (f *file) sync() {
	size := int64(len(f.disk))
	for _, v := range f.flight {
		if v.sizes {
			size = v.size
		}
		v.touched(sectorSize, func(from, to int64) {
			to = min(to, int64(len(f.memory)))
			f.disk = resized(f.disk, max(int64(len(f.disk)), to))
			if from < to {
				copy(f.disk[from:to], f.memory[from:to])
			}
		})
	}
	f.disk = resized(f.disk, size)
}

// write changes the content of a file as the kernel shows it. After a power cut the disk may have this write or not, until a sync. sizes notes that it changes
// the size of the file.
func (f *file) write(v version) {
	v.sizes = v.size != int64(len(f.memory))
	f.memory = resized(f.memory, v.size)
	copy(f.memory[v.at:], v.data)
	f.flight = append(f.flight, v)
}

// resized is b with a length of n, with zeros behind its old end.
func resized(b []byte, n int64) []byte {
	if n <= int64(len(b)) {
		return b[:n:n]
	}
	return append(b, make([]byte, n-int64(len(b)))...)
}

// Evict lets the kernel forget some pages that it takes for clean: a read shows the content of the disk then. Pages with unsynced writes are not clean, and
// stay. After a failed sync the two can differ. It reports whether there was such a page; forget is the share of them that is forgotten.
func (d *Disk) Evict(r *rand.Rand, forget float64) bool {
	found := false
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		f := d.names[name]
		dirty, disk := f.dirty(), resized(slices.Clone(f.disk), int64(len(f.memory)))
		for at := 0; at < len(f.memory); at += pageSize {
			end := min(at+pageSize, len(f.memory))
			if dirty[at/pageSize] || bytes.Equal(f.memory[at:end], disk[at:end]) {
				continue
			}
			found = true
			if r.Float64() < forget {
				copy(f.memory[at:end], disk[at:end])
			}
		}
	}
	return found
}

// dirty returns the numbers of the pages of a file with unsynced writes.
func (f *file) dirty() map[int]bool {
	pages := map[int]bool{}
	for _, v := range f.flight {
		v.touched(pageSize, func(from, _ int64) { pages[int(from/pageSize)] = true })
	}
	return pages
}
