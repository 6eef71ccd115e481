use super::*;

#[test]
fn a_released_extension_is_found_in_the_cache() {
    let cache = tempfile::tempdir().unwrap();
    let extension = Extension {
        alias: "k8s".to_owned(),
        package: Package::Release {
            repository: "https://github.com/acme/kube-steps".to_owned(),
            version: "v0.1.0".to_owned(),
        },
        config: Value::Null,
        env: BTreeMap::new(),
    };
    let path = cache
        .path()
        .join("proctor/extensions/github.com/acme/kube-steps/v0.1.0/kube-steps");
    let error = program(&extension, Some(cache.path())).unwrap_err();
    let expected = format!(
        "the extension `k8s` is not installed, and Proctor downloads nothing: copy the program \
         of https://github.com/acme/kube-steps@v0.1.0 to `{}`",
        path.display()
    );
    assert_eq!(error.to_string(), expected);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "").unwrap();
    assert_eq!(program(&extension, Some(cache.path())).unwrap(), path);
}
