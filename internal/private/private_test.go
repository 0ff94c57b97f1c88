//go:build unix

package private_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/internal/private"
)

// folder is a private folder with a file in it.
func folder(t *testing.T) (dir, file string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "node")
	if err := private.Folder(dir); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "key")
	if err := private.Write(file, []byte("secret")); err != nil {
		t.Fatal(err)
	}
	return dir, file
}

func do(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestWrittenForTheOwnerAlone(t *testing.T) {
	dir, file := folder(t)
	for path, want := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, file: 0o600} {
		if info, err := os.Lstat(path); err != nil || info.Mode() != want {
			t.Errorf("%s has mode %v, want %v: %v", path, info.Mode(), want, err)
		}
	}
	do(t, private.Write(file, []byte("another")))
	if b, err := private.Read(file); err != nil || string(b) != "another" {
		t.Errorf("read %q, %v", b, err)
	}
	if found := private.Check(dir, "key", "not there"); len(found) != 0 {
		t.Error(found[0])
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// What somebody put where the new file is written: neither used nor touched.
// What a crash left there is no hindrance.
func TestPlantedFilesAreRefused(t *testing.T) {
	for name, plant := range map[string]func(at, elsewhere string) error{
		"open to all": func(at, _ string) error {
			return errors.Join(os.WriteFile(at, nil, 0o600), os.Chmod(at, 0o666))
		},
		"readable": func(at, _ string) error {
			return errors.Join(os.WriteFile(at, nil, 0o600), os.Chmod(at, 0o640))
		},
		"link":       func(at, elsewhere string) error { return os.Symlink(elsewhere, at) },
		"loose link": func(at, elsewhere string) error { return os.Symlink(elsewhere+"/nothing", at) },
		"folder":     func(at, _ string) error { return os.Mkdir(at, 0o700) },
	} {
		_, file := folder(t)
		elsewhere := filepath.Join(t.TempDir(), "elsewhere")
		do(t, os.WriteFile(elsewhere, []byte("before"), 0o600), plant(file+".new", elsewhere))
		err := private.Write(file, []byte("new"))
		var loose *private.LooseError
		if !errors.As(err, &loose) || !strings.Contains(loose.Mend, file+".new") {
			t.Errorf("%s: %v", name, err)
		}
		if b, _ := os.ReadFile(elsewhere); string(b) != "before" {
			t.Errorf("%s: written through the link: %q", name, b)
		}
		if b, err := private.Read(file); err != nil || string(b) != "secret" {
			t.Errorf("%s: the file is %q, %v", name, b, err)
		}
		if _, err := os.Lstat(file + ".new"); err != nil {
			t.Errorf("%s: removed: %v", name, err)
		}
	}
	_, file := folder(t)
	do(t, os.WriteFile(file+".new", []byte("ha"), 0o600), private.Write(file, []byte("whole")))
	if b, err := private.Read(file); err != nil || string(b) != "whole" {
		t.Errorf("after a crash: %q, %v", b, err)
	}
}

// A file that others could read, or a folder in which they could replace it, is
// refused wherever it is used, with what to type.
func TestLooseModesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		loosen func(dir, file string) error
		mend   string
	}{
		"readable by others":  {func(_, file string) error { return os.Chmod(file, 0o644) }, "chmod 600 FILE"},
		"readable by a group": {func(_, file string) error { return os.Chmod(file, 0o640) }, "chmod 600 FILE"},
		"writable by others":  {func(_, file string) error { return os.Chmod(file, 0o602) }, "chmod 600 FILE"},
		"a link": {func(_, file string) error {
			return errors.Join(os.Rename(file, file+"2"), os.Symlink(file+"2", file))
		}, "readlink -f FILE"},
		"a folder for a group": {func(dir, _ string) error { return os.Chmod(dir, 0o770) }, "chmod 700 DIR"},
		"a folder for all":     {func(dir, _ string) error { return os.Chmod(dir, 0o777) }, "chmod 700 DIR"},
	} {
		dir, file := folder(t)
		do(t, c.loosen(dir, file))
		want := strings.NewReplacer("FILE", file, "DIR", dir).Replace(c.mend)
		found := private.Check(dir, "key")
		if len(found) != 1 || !strings.Contains(found[0].Mend, want) {
			t.Errorf("%s: found %v, want %q", name, found, want)
		}
		var loose *private.LooseError
		if strings.HasPrefix(name, "a folder") {
			if err := private.Write(file, nil); !errors.As(err, &loose) {
				t.Errorf("%s: written: %v", name, err)
			}
			if err := private.Folder(dir); !errors.As(err, &loose) {
				t.Errorf("%s: taken: %v", name, err)
			}
		} else if _, err := private.Read(file); !errors.As(err, &loose) {
			t.Errorf("%s: read: %v", name, err)
		}
	}
}

// An operator's own key may be behind a link, and be a group's to read.
func TestKeysOfOperators(t *testing.T) {
	dir, file := folder(t)
	link := filepath.Join(dir, "live.pem")
	do(t, os.Symlink(file, link))
	for mode, ok := range map[os.FileMode]bool{
		0o600: true, 0o400: true, 0o640: true, 0o660: false, 0o644: false, 0o604: false,
	} {
		do(t, os.Chmod(file, mode))
		if err := private.CheckKey(link); (err == nil) != ok {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
}
