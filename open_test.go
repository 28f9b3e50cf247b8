package oncehttp_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// TestOpenIsForFiles: what names a database is no file: the error names the package that opens it, and repeats no password.
func TestOpenIsForFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	for at, says := range map[string]string{
		"postgres://shop:hunter2@db.test/shop":                "persist/postgres",
		"PostgreSQL://shop:hunter2@db.test/shop":              "persist/postgres",
		"host=db.test user=shop password=hunter2 dbname=shop": "persist/postgres",
		"dbname=shop password=hunter2":                        "persist/postgres",
		"postgres:hunter2":                                    "persist/postgres",
		"mysql://shop:hunter2@db.test/shop":                   "persist/mysql",
		"mariadb://shop:hunter2@db.test/shop":                 "persist/mysql",
		"shop:hunter2@tcp(db.test:3306)/shop":                 "persist/mysql",
		"shop:hunter2@unix(/run/mysqld.sock)/shop":            "persist/mysql",
		"redis://:hunter2@db.test":                            "persist/redis",
		"rediss://:hunter2@db.test":                           "persist/redis",
		"sqlite://hunter2":                                    "want the path of a file",
		"file:///hunter2":                                     "want the path of a file",
		"":                                                    "want the path of a file",
	} {
		c, err := oncehttp.Open(at, oncehttp.Config{})
		if c != nil || !errors.Is(err, oncehttp.ErrConfig) || !errors.Is(err, oncehttp.ErrNoEffect) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want ErrConfig that names %s", at, err, says)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error repeats a password: %v", at, err)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("%v, %v are left", left, err)
	}
	for _, path := range []string{"payments.db", "postgres.db", "postgres", "host=a", "a@b.db"} {
		c, err := oncehttp.Open(path, oncehttp.Config{})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		c.Close()
	}
}

// TestOpenTwice: a file that this process has open already is told from one of another process, by whatever name it is
// opened, and whoever opened it.
func TestOpenTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, link := filepath.Join(dir, "payments.db"), filepath.Join(dir, "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	c, err := oncehttp.Open(path, oncehttp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		_, err := oncehttp.Open(name, oncehttp.Config{})
		if !errors.Is(err, persist.ErrLocked) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "this process has it open") {
			t.Errorf("%v, want ErrLocked that says who", err)
		}
		if err != nil && strings.Contains(err.Error(), "another process") {
			t.Errorf("%v; there is no other process", err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	j, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, err := oncehttp.Open(link, oncehttp.Config{}); !errors.Is(err, persist.ErrLocked) || !strings.Contains(err.Error(), "this process has it open") {
		t.Errorf("%v, want ErrLocked that says who", err)
	}
}
