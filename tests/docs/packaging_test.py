"""The Conan recipe and the vcpkg port name the version, the engines and the packages that the build has."""
import json
import pathlib
import re
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CMAKE = (SOURCE / "CMakeLists.txt").read_text()
ENGINES = {each.lower() for each in re.findall(r"holdfast_engine\(([A-Z]+) ", (SOURCE / "cmake" / "library.cmake").read_text())}
RECIPE = (SOURCE / "packaging" / "conan" / "conanfile.py").read_text()
PORT = SOURCE / "packaging" / "vcpkg" / "holdfast"


class packaging(unittest.TestCase):
    def test_every_engine_can_be_chosen_in_conan(self):
        table = re.search(r"ENGINES = \{(.*?)\n\}", RECIPE, re.S).group(1)
        self.assertEqual(set(re.findall(r'^    "(\w+)":', table, re.M)), ENGINES)

    def test_conan_asks_for_packages_of_our_list(self):
        ours = {line.strip() for line in (SOURCE / "packages.txt").read_text().splitlines()}
        asked = set(re.findall(r'"(lib[\w-]+-dev)"', RECIPE))
        self.assertTrue(asked)
        self.assertLessEqual(asked, ours)

    def test_every_engine_is_a_feature_of_the_vcpkg_port(self):
        manifest = json.loads((PORT / "vcpkg.json").read_text())
        self.assertEqual(set(manifest["features"]), ENGINES)
        self.assertEqual(set(manifest["default-features"]), ENGINES)
        self.assertEqual(manifest["version"], re.search(r"VERSION ([0-9.]+)", CMAKE.split("project(")[1]).group(1))
        options = dict(re.findall(r"^    (\w+) (HOLDFAST_\w+)", (PORT / "portfile.cmake").read_text(), re.M))
        self.assertEqual(options, {each: "HOLDFAST_" + each.upper() for each in ENGINES})


if __name__ == "__main__":
    unittest.main()
