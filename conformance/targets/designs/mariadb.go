package main

import (
	"database/sql"
	"errors"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
)

// mariadb creates a database of this process with the table, and opens it. e.end removes it. After an error the pool is of no use, and may be nil.
func (e *env) mariadb(table string) (*sql.DB, error) {
	admin, err := sql.Open("mysql", "root@tcp(127.0.0.1:3306)/test")
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	if _, err := admin.Exec("CREATE DATABASE " + e.name); err != nil {
		return nil, err
	}
	db, err := sql.Open("mysql", "root@tcp(127.0.0.1:3306)/"+e.name)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(40)
	db.SetMaxIdleConns(40)
	db.SetConnMaxLifetime(time.Minute)
	e.closers = append(e.closers, func() error {
		return errors.Join(e.dropDatabase(), db.Close())
	})
	_, err = db.Exec(table)
	return db, err
}

// dropDatabase removes the database, after an end of all statements in it.
func (e *env) dropDatabase() error {
	admin, err := sql.Open("mysql", "root@tcp(127.0.0.1:3306)/test")
	if err != nil {
		return err
	}
	defer admin.Close()
	rows, err := admin.Query("SELECT id FROM information_schema.processlist WHERE db = ?", e.name)
	if err != nil {
		return err
	}
	var ids []int
	for rows.Next() {
		var id int
		if err := rows.Scan(&id); err != nil {
			return err
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		_, _ = admin.Exec("KILL " + strconv.Itoa(id)) // it may have ended by itself
	}
	_, err = admin.Exec("DROP DATABASE " + e.name)
	return errors.Join(rows.Err(), err)
}

// duplicate reports whether a UNIQUE constraint refused a row.
func duplicate(err error) bool {
	var refused *mysql.MySQLError
	return errors.As(err, &refused) && refused.Number == 1062
}
