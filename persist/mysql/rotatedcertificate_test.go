package mysql_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
)

// serverFiles makes a folder for files that a server of a test's own reads.
func serverFiles(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "oncehttp-files-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if os.Getuid() != 0 {
		return dir
	}
	u, err := user.Lookup("mysql")
	if err != nil {
		sqltest.Missing(t, err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRotatedCertificate rotates the certificate of the journal's user while a client works on a DB of the program's own, and refuses the old one first. No
// call fails, and each operation takes effect once.
func TestRotatedCertificate(t *testing.T) {
	t.Parallel()
	a, dir := sqltest.NewAuthority(t), serverFiles(t)
	a.WriteServer(dir)
	own := ownServer(t, "--ssl-ca="+dir+"/ca.pem", "--ssl-cert="+dir+"/server.pem", "--ssl-key="+dir+"/server.key")
	root := mysql.NewConfig()
	root.Net, root.Addr, root.User = "tcp", own.Address, "root"
	beside := connected(t, root)
	run := func(format string, args ...any) {
		t.Helper()
		if _, err := beside.Exec(fmt.Sprintf(format, args...)); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
	}
	opts := journal.Options{Database: "shop"}
	run("CREATE DATABASE shop")
	if err := journal.Migrate(t.Context(), "mysql://root@"+own.Address+"/shop", opts); err != nil {
		t.Fatal(err)
	}
	run("CREATE USER shop@localhost") // the server has a user without a name there
	run("GRANT SELECT, INSERT, UPDATE, DELETE ON shop.* TO shop@localhost")
	var current atomic.Pointer[tls.Config]
	rotate := func(n int) {
		name := fmt.Sprint("shop-", n)
		run("ALTER USER shop@localhost REQUIRE SUBJECT '/CN=%s'", name)
		current.Store(a.Config(a.Client(name)))
		run("KILL USER shop@localhost")
	}
	rotate(-1)
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.DBName = "tcp", own.Address, "shop", "shop"
	if err := c.Apply(mysql.BeforeConnect(func(_ context.Context, c *mysql.Config) error {
		c.TLS = current.Load()
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	db := connected(t, c)
	db.SetMaxOpenConns(6)
	db.SetMaxIdleConns(6)
	sqltest.Rotated(t, openDB(t, db, opts), rotate)
}
