//go:build filesystems

package bolt_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// TestFileSystems mounts file systems, which takes root, mkfs.ext4, mkfs.xfs and mkfs.btrfs. So it has a build tag:
//
//	go test -tags filesystems ./persist/bolt -run TestFileSystems -v -timeout 1h -args -filesystems 80
var cutsOfEach = flag.Int("filesystems", 8, "how often TestFileSystems cuts each file system off")

// TestFileSystems cuts whole file systems off while eight writers work with a journal, a new one every fourth time, and
// mounts what is left. The device has all that was written to it by then, in the order in which it was written.
func TestFileSystems(t *testing.T) {
	// Below is a file system that copies a file at one moment.
	m := &machine{t, testrun.Dir(t)}
	m.sh("mkdir %[1]s/host %[1]s/disk %[1]s/image; truncate -s 3G %[1]s/host.img; mkfs.xfs -q -m reflink=1 %[1]s/host.img", m.dir)
	m.sh("mount -o loop %[1]s/host.img %[1]s/host", m.dir)
	defer m.sh("umount %s/host", m.dir)
	for _, fs := range []fileSystem{
		{"mkfs.ext4 -q -F", "loop", "loop", false}, {"mkfs.ext4 -q -F", "loop,data=writeback", "loop,data=writeback", false},
		{"mkfs.xfs -q -f", "loop", "loop,nouuid", false}, {"mkfs.btrfs -q -f", "loop", "loop", true},
	} {
		m.cutOff(fs)
	}
}

// fileSystem is one that is cut off.
type fileSystem struct {
	mkfs    string
	options string
	image   string // the options with which what is left of it is mounted
	alone   bool   // what is left cannot be mounted beside it
}

// machine has a directory in which file systems are mounted.
type machine struct {
	t   *testing.T
	dir string
}

// sh runs a command of the shell.
func (m *machine) sh(format string, args ...any) {
	m.t.Helper()
	command := fmt.Sprintf(format, args...)
	if out, err := exec.Command("sh", "-e", "-c", command).CombinedOutput(); err != nil {
		m.t.Fatalf("%s: %v: %s", command, err, out)
	}
}

// cutOff makes a file system and cuts it off again and again.
func (m *machine) cutOff(fs fileSystem) {
	m.sh("rm -f %[1]s/host/*; truncate -s 400M %[1]s/host/disk.img; %[2]s %[1]s/host/disk.img", m.dir, fs.mkfs)
	mount := fmt.Sprintf("mount -o %s %s/host/disk.img %s/disk", fs.options, m.dir, m.dir)
	m.sh("%s", mount)
	defer m.sh("umount %s/disk", m.dir)
	none, acknowledged := 0, 0
	for round := range *cutsOfEach {
		name := fmt.Sprintf("%d/journal.db", round/4)
		if round%4 == 0 {
			m.sh("mkdir %s/disk/%d; sync", m.dir, round/4)
		}
		said := m.runAndCut(filepath.Join(m.dir, "disk", name))
		if fs.alone {
			m.sh("umount %s/disk", m.dir)
		}
		m.sh("mount -o %s %s/host/left.img %s/image", fs.image, m.dir, m.dir)
		path := filepath.Join(m.dir, "image", name)
		if _, err := os.Stat(path); err != nil && len(said) == 0 {
			none++
		} else if err := holds(path, said); err != nil {
			m.t.Errorf("%s, %s, cut %d: %v", fs.mkfs, fs.options, round, err)
		}
		m.sh("umount %[1]s/image; rm %[1]s/host/left.img", m.dir)
		if fs.alone {
			m.sh("%s", mount)
		}
		acknowledged += len(said)
	}
	m.t.Logf("%s, %s: %d cuts, %d of them before there was a file, after %d acknowledged operations", fs.mkfs, fs.options, *cutsOfEach, none, acknowledged)
}

// runAndCut lets a process work with a journal, and returns what it had acknowledged when what the device has was taken.
func (m *machine) runAndCut(path string) []string {
	cmd, out, _ := spawn(m.t, "work", path)
	var mu sync.Mutex
	var said []string
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			mu.Lock()
			said = append(said, lines.Text())
			mu.Unlock()
		}
	})
	time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
	mu.Lock()
	before := said[:len(said):len(said)]
	mu.Unlock()
	m.sh("cp --reflink=always %[1]s/host/disk.img %[1]s/host/left.img", m.dir)
	if err := cmd.Process.Kill(); err != nil {
		m.t.Fatal(err)
	}
	reading.Wait()
	_ = cmd.Wait()
	return before
}

// holds opens a journal. It must hold what the process of the role work has said, and take more.
func holds(path string, said []string) error {
	j, err := tryOpen(path, bolt.Options{})
	if err != nil {
		return err
	}
	defer j.Close()
	there := map[string]persist.State{}
	for r, err := range j.List(context.Background(), persist.Query{AllAccounts: true}) {
		if err != nil {
			return err
		}
		there[r.Key] = r.State
	}
	for _, s := range said {
		what, key, _ := strings.Cut(s, " ")
		if state, found := there[key]; !found || what == "finished" && state != persist.StateConfirmed {
			return fmt.Errorf("%q was acknowledged, and it is there %t, %v", s, found, state)
		}
	}
	if _, created, err := j.Begin(context.Background(), record("afterwards")); err != nil || !created {
		return fmt.Errorf("Begin afterwards: created %t, %w", created, err)
	}
	return j.Close()
}
