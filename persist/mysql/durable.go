package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
)

// isDurable is a condition on the server's settings: its commits are on the disk. With innodb_flush_log_at_trx_commit
// = 1 and a binary log, only the prepare is synced there. After a loss of power, the commit is found in the binary
// log, or not at all. So each commit must sync the binary log, too. With 3 the commit is synced in InnoDB as well.
// See MariaDB's "Binary Log Group Commit and InnoDB Flushing Performance".
const isDurable = "(@@innodb_flush_log_at_trx_commit = 3 OR @@innodb_flush_log_at_trx_commit = 1 AND (@@log_bin = 0 OR @@sync_binlog = 1))"

// readSettings reads isDurable, and its settings, for an error.
const readSettings = "SELECT " + isDurable + ", CAST(@@innodb_flush_log_at_trx_commit AS SIGNED), CAST(@@log_bin AS SIGNED), CAST(@@sync_binlog AS SIGNED)"

// settings is the target of a Scan of a row of readSettings.
type settings struct{ durable, flush, binlog, sync int64 }

// dest returns pointers to the settings of a server, in the order in which they are read.
func (s *settings) dest() []any { return []any{&s.durable, &s.flush, &s.binlog, &s.sync} }

// check returns ErrVolatile if the server may lose a commit when the power fails.
func (s *settings) check() error {
	if s.durable == 1 {
		return nil
	}
	return fmt.Errorf("%w: innodb_flush_log_at_trx_commit is %d, log_bin is %d and sync_binlog is %d; "+
		"set innodb_flush_log_at_trx_commit to 1 and, where log_bin is on, sync_binlog to 1; or innodb_flush_log_at_trx_commit to 3; or set AllowVolatile",
		ErrVolatile, s.flush, s.binlog, s.sync)
}

// greeting checks the server's settings before a new connection is used. So it detects a server restarted with other
// settings, and a takeover by a replica.
type greeting struct {
	driver.Connector
	most    *most
	durable bool // a server that may lose acknowledged writes is refused
}

// Connect implements driver.Connector: it makes a connection and checks the server's settings. Error: also ErrVolatile.
func (g greeting) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := g.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := g.check(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// check reads and checks the settings on a connection of the driver. Each connection switches autocommit on, whatever
// the server's default is: otherwise nothing would ever be committed. A proxy may have kept that from the server. The largest packet is noted for the bounds of
// rows. Without g.durable the settings are read, but any is accepted.
func (g greeting) check(ctx context.Context, conn driver.Conn) error {
	rows, err := conn.(driver.QueryerContext).QueryContext(ctx, readSettings+", CAST(@@autocommit AS SIGNED), "+readPacket, nil)
	if err != nil {
		return err
	}
	values := make([]driver.Value, 6)
	if err := errors.Join(rows.Next(values), rows.Close()); err != nil {
		return err
	}
	var s settings
	var autocommit, packet int64
	for i, to := range append(s.dest(), &autocommit, &packet) {
		n, ok := values[i].(int64)
		if !ok {
			return fmt.Errorf("persist/mysql: the server's settings cannot be read: %T", values[i])
		}
		*to.(*int64) = n
	}
	g.most.Store(packet)
	if !g.durable {
		return nil
	}
	if autocommit != 1 {
		return fmt.Errorf("%w: autocommit is off on a new connection, which has switched it on; look for a proxy that does not pass on SET autocommit=1", ErrVolatile)
	}
	return s.check()
}
