package place

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lockOwner finds the process with a flock(2) on the file in /proc/locks (proc(5)),
// and when it was started. pid is 0 if there is none, or if it cannot be seen.
func lockOwner(path string) (pid int, since time.Time) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, since
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	locks, err := os.Open("/proc/locks")
	if !ok || err != nil {
		return 0, since
	}
	defer locks.Close()
	inode := fmt.Sprintf(":%d", stat.Ino)
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		words := strings.Fields(lines.Text()) // 1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE START END
		if len(words) < 6 || words[1] != "FLOCK" || !strings.HasSuffix(words[5], inode) {
			continue
		}
		if pid, err = strconv.Atoi(words[4]); err != nil || pid <= 0 {
			return 0, since
		}
		if proc, err := os.Stat("/proc/" + words[4]); err == nil {
			since = proc.ModTime()
		}
		return pid, since
	}
	return 0, since
}
