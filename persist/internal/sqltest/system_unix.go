//go:build unix

package sqltest

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// freeze stops a process until wake. The process does not notice it, as in a long pause of a virtual machine.
func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// wake lets a frozen process go on.
func wake(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// give makes the user of the database server the owner of a folder, if this process runs as root; else the server runs as this user, and nothing is to do.
func (s *OwnServer) give(dir string) error {
	uid, gid, err := s.ids()
	if os.Getuid() != 0 || err != nil {
		return err
	}
	return os.Chown(dir, uid, gid)
}

// as lets a command run as the server's user, if this one is root.
func (s *OwnServer) as(cmd *exec.Cmd) {
	if uid, gid, err := s.ids(); os.Getuid() == 0 && err == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
}

// ids returns the user and group ids of s.User, under whom the server runs: some refuse to run as root.
func (s *OwnServer) ids() (uid, gid int, err error) {
	u, err := user.Lookup(s.User)
	if err != nil {
		return 0, 0, err
	}
	uid, err = strconv.Atoi(u.Uid)
	if err != nil {
		return 0, 0, err
	}
	gid, err = strconv.Atoi(u.Gid)
	return uid, gid, err
}

// giveLike gives the file at path to the owner of the folder dir, if this process runs as root: then a database server with a user of its own can read it.
func giveLike(path, dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	of, is := info.Sys().(*syscall.Stat_t)
	if !is || os.Getuid() != 0 {
		return nil
	}
	return os.Chown(path, int(of.Uid), int(of.Gid))
}
