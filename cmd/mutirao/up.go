package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/node/assemble"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// upOptions override the node's configuration.
type upOptions struct {
	listen         []string
	api            string
	connectionTime string
}

func newUpCommand() *cobra.Command {
	var o upOptions
	cmd := &cobra.Command{
		Use:   "up [--listen MULTIADDR]... [--api ADDR] [--connection-time 15s]",
		Short: "° Run the node until Ctrl-C",
		Long: `Runs the node of --dir in the foreground. Its configuration is config.yaml in that
folder, where there is one; options override it. SIGTERM and Ctrl-C make it
go down in good order: partners are told, give it nothing new, and keep what it holds
for it until its connection time runs out. Killing it loses nothing either. To go for
longer: mutirao leave.`,
		Example: `  mutirao up
  mutirao up --listen /ip4/0.0.0.0/udp/4001/quic-v1 --api 127.0.0.1:7700
  mutirao up --connection-time 5m -v`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error { return up(cmd.Context(), uiOf(cmd), nodeDir(cmd), o) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVar(&o.listen, "listen", nil, "a `multiaddress` for partners; may be repeated")
	f.StringVar(&o.api, "api", "", "the `address` of the local API: HOST:PORT or unix:PATH")
	f.StringVar(&o.connectionTime, "connection-time", "", "how `long` a partner may go unseen before it counts as gone")
	return cmd
}

// configure reads the node's configuration and puts the options over it.
func (o upOptions) configure(dir string) (configs.Config, error) {
	cfg, err := configs.Load(dir)
	if err != nil {
		return cfg, err
	}
	if len(o.listen) > 0 {
		cfg.Listen = o.listen
	}
	if o.api != "" {
		cfg.API = o.api
	}
	if o.connectionTime != "" {
		if cfg.ConnectionTime, err = workflow.ParseDuration(o.connectionTime); err != nil {
			return cfg, usagef("--connection-time: %v", err)
		}
	}
	if err := cfg.ValidateIn(dir); err != nil {
		return cfg, usagef("%v", err)
	}
	return cfg, nil
}

func up(ctx context.Context, u *ui, dir string, o upOptions) error {
	cfg, err := o.configure(dir)
	if err != nil {
		return err
	}
	assemble.Economise(cfg)
	host, err := assemble.Open(dir, cfg, thisBuild().Version, u.logger())
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- host.Run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-host.Ready():
	}
	if err := u.writeUp(ctx, dir, host); err != nil {
		u.note("%v", err) // the node runs all the same
	}
	err = <-ended
	if err == nil {
		u.note("%s", map[membership.Going]string{
			membership.Staying: "down in good order", membership.Leaves: "left in good order",
			membership.LeavesForGood: "left for good",
		}[host.Left()])
	}
	return err
}

// logger writes what the node has to say to stderr.
func (u *ui) logger() *slog.Logger {
	level := slog.LevelInfo
	switch {
	case u.verbose:
		level = slog.LevelDebug
	case u.quiet:
		level = slog.LevelWarn
	}
	return slog.New(slog.NewTextHandler(u.err, &slog.HandlerOptions{Level: level}))
}

// upInfo is what up prints for programs.
type upInfo struct {
	Name      string             `json:"name"`
	Mesh      string             `json:"mesh"`
	ID        workflow.PartnerID `json:"id"`
	API       string             `json:"api"`
	Page      string             `json:"page,omitempty"` // opens the web page once
	Addresses []string           `json:"addresses"`
}

func (u *ui) writeUp(ctx context.Context, dir string, host *assemble.Host) error {
	st, err := host.Service().Status(ctx)
	if err != nil {
		return err
	}
	client, err := httpapi.Dial(dir)
	if err != nil {
		return err
	}
	at := client.Access()
	info := upInfo{Name: st.Name, Mesh: st.Mesh, ID: st.ID, API: at.URL, Addresses: append([]string{}, host.Addrs()...)}
	if info.API == "" {
		info.API = at.Address
	} else if info.Page, _, err = client.SignIn(ctx, httpapi.SignInLink{}); err != nil {
		return err
	}
	return u.result(info, func(w io.Writer) {
		fmt.Fprintf(w, "%s of mesh %s is up\n", info.Name, info.Mesh)
		fmt.Fprintf(w, "API       %s\n", info.API)
		if info.Page != "" {
			fmt.Fprintf(w, "page      %s (opens once; \"mutirao web\" prints another link)\n", info.Page)
		}
		for _, a := range info.Addresses {
			fmt.Fprintf(w, "partners  %s\n", a)
		}
	})
}
