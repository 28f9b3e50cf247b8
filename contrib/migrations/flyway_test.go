//go:build flyway

package migrations

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
)

// flyway is a program in Java, which no test of every day installs: go test -tags flyway, with the command in FLYWAY.
func init() {
	tools["flyway"] = tool{"flyway_schema_history", byFlyway, "Detected resolved migration not applied to database"}
}

// byFlyway runs the steps with the command flyway. Its names for them begin with V, and have two underlines behind the number.
func byFlyway(t *testing.T, p *place, files fs.FS, table string) ([]string, error) {
	t.Helper()
	command := os.Getenv("FLYWAY")
	if command == "" {
		t.Fatal("FLYWAY is not set; want the command flyway")
	}
	at, named := t.TempDir(), map[string]string{}
	for _, name := range sorted(t, files) {
		script := "V" + strings.Replace(name, "_", "__", 1)
		named[script] = name
		if err := os.WriteFile(filepath.Join(at, script), []byte(read(t, files, name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := scripts(p, table)
	to, user, password := jdbc(t, p)
	out, err := exec.CommandContext(t.Context(), command, "-url="+to, "-user="+user, "-password="+password, "-table="+table, "-locations=filesystem:"+at,
		"-baselineOnMigrate=true", "-baselineVersion=0", "migrate").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	var names []string
	for _, script := range scripts(p, table)[len(before):] {
		names = append(names, named[script])
	}
	return names, nil
}

// scripts returns the files that the table says were run, in their order; none if there is no table yet.
func scripts(p *place, table string) (all []string) {
	rows, err := p.db.Query("SELECT script FROM " + table + " WHERE type = 'SQL' ORDER BY installed_rank")
	if err != nil {
		return nil
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var script string
		if rows.Scan(&script) == nil {
			all = append(all, script)
		}
	}
	return all
}

// jdbc returns the address of the shop for Java, with its user and password.
func jdbc(t *testing.T, p *place) (to, user, password string) {
	t.Helper()
	u, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	user = u.User.Username()
	password, _ = u.User.Password()
	if p.dialect == goose.DialectPostgres {
		return "jdbc:postgresql://" + u.Host + u.Path + "?currentSchema=" + u.Query().Get("search_path"), user, password
	}
	return "jdbc:mariadb://" + u.Host + u.Path, user, password
}
