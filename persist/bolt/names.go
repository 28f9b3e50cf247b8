package bolt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// A durable file is lost all the same if the entry of its directory is not durable. Open cannot know who
// has made, moved or restored the file, and if this was synced. So each Open syncs the directory of the
// file, and of each symbolic link leading to it.

// linksMax is how many symbolic links are followed.
const linksMax = 40

// followLinks returns path and the names that it leads to, one symbolic link after the other. The last is that of the file itself, also if no file is
// there yet.
func followLinks(path string) []string {
	names := []string{path}
	for range linksMax {
		target, err := os.Readlink(path)
		if err != nil {
			break // no link
		}
		if !filepath.IsAbs(target) {
			// Not cleaned: if a directory is a link, too, ".." is not the name before it.
			target = directory(path) + target
		}
		path = target
		names = append(names, path)
	}
	return names
}

// directory returns the part of a path before its last element, with a separator at the end; "./" if there is none.
func directory(path string) string {
	dir, _ := filepath.Split(path)
	if dir == "" {
		return "." + string(filepath.Separator)
	}
	return dir
}

// syncNames makes durable the names leading from path to its file: each symbolic link is a name in a directory of its own. It is false if the system cannot
// sync a directory, or does not let this process open one.
// Errors: those of a sync, such as EIO.
func syncNames(path string) (synced bool, err error) {
	synced, done := true, map[string]bool{}
	for _, name := range followLinks(path) {
		dir := directory(name)
		if done[dir] {
			continue
		}
		done[dir] = true
		switch err := syncDir(dir); {
		case errors.Is(err, errors.ErrUnsupported), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EINVAL):
			synced = false
		case err != nil:
			return false, err
		}
	}
	return synced, nil
}

// syncDir makes the names in a directory durable, as after a file in it was made or renamed.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// temporary ends the names of files during their creation.
const temporary = ".tmp"

// removeSecondName removes the temporary name of a file if its creation was cut off after it had its own. It looks for it beside the file, among the names
// that create gives. Errors are passed over: a second name does no harm. Other temporary files are left alone: their owners are unknown.
func removeSecondName(path string, f *os.File) {
	mine, err := f.Stat()
	if err != nil || links(mine) < 2 {
		return
	}
	names := followLinks(path)
	name := names[len(names)-1]
	entries, err := os.ReadDir(directory(name))
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), filepath.Base(name)+".") || !strings.HasSuffix(e.Name(), temporary) {
			continue
		}
		if there, err := e.Info(); err == nil && os.SameFile(mine, there) {
			_ = os.Remove(directory(name) + e.Name())
		}
	}
}
