use super::*;

#[test]
fn paths_are_normalised_without_the_disk() {
    let check = |path: &str, expected: &str| {
        assert_eq!(normalise(Path::new(path)), Path::new(expected));
    };
    check("a/./b/../c", "a/c");
    check("../a", "../a");
    check("a/../../b", "../b");
    check("/../a", "/a");
    check("./a", "a");
}

#[test]
fn a_glob_starts_at_its_first_wildcard() {
    assert_eq!(split_glob("tasks/**/*.yaml"), ("tasks", "**/*.yaml"));
    assert_eq!(split_glob("*.yaml"), ("", "*.yaml"));
    assert_eq!(split_glob("a/b.yaml"), ("a", "b.yaml"));
    assert_eq!(split_glob("/*.yaml"), ("/", "*.yaml"));
    assert_eq!(split_glob("a/b*/c.yaml"), ("a", "b*/c.yaml"));
}

#[test]
fn double_stars_cross_folders_none_included() {
    let folder = tempfile::tempdir().unwrap();
    for file in [
        "t/a.yaml",
        "t/x/b.yaml",
        "t/x/y/c.yaml",
        "t/x/d.txt",
        "u/e.yaml",
        "t/B.yaml",
    ] {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let check = |glob: &str, expected: &[&str]| {
        let found = FileOrigin::Own.glob(folder.path(), glob).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|p| p.strip_prefix(folder.path()).unwrap().to_str().unwrap())
            .collect();
        assert_eq!(found, expected, "{glob}");
    };
    check(
        "t/**/*.yaml",
        &["t/B.yaml", "t/a.yaml", "t/x/b.yaml", "t/x/y/c.yaml"],
    );
    check("t/*.yaml", &["t/B.yaml", "t/a.yaml"]);
    check("**/x/*.yaml", &["t/x/b.yaml"]);
    check("t/{a,B}.yaml", &["t/B.yaml", "t/a.yaml"]);
    check("t/a.yaml", &["t/a.yaml"]);
    check("nowhere/*.yaml", &[]);
}

#[test]
fn a_source_keeps_its_files_inside() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let root = base.join("source");
    fs::create_dir(&root).unwrap();
    fs::write(base.join("secret.yaml"), "").unwrap();
    fs::write(root.join("task.yaml"), "").unwrap();
    std::os::unix::fs::symlink(base.join("secret.yaml"), root.join("link.yaml")).unwrap();
    let source = FileOrigin::Source {
        name: "other".to_owned(),
        root: root.clone(),
    };
    assert_eq!(
        source.resolve(&root, "task.yaml").unwrap(),
        root.join("task.yaml")
    );
    for written in [
        "../secret.yaml",
        "/etc/passwd",
        "link.yaml",
        "a/../../secret.yaml",
    ] {
        let problem = source.resolve(&root, written).unwrap_err();
        assert_eq!(
            problem.message,
            format!("`{written}` is outside the source `other`")
        );
    }
    let problem = source.glob(&root, "*.yaml").unwrap_err();
    assert_eq!(problem.message, "`link.yaml` is outside the source `other`");
    assert!(source.glob(&root, "../*.yaml").is_err());
}
