// Compares special functions with values that were computed with 50 digits.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

struct SpecialValues {
  const char* op;
  // Each row has the arguments and the result.
  std::vector<std::vector<double>> values;
};
const std::vector<SpecialValues>& UnarySpecialCases() {
  static const auto& cases = *new std::vector<SpecialValues>{
      {"Digamma",
       {{-1000.25, 10.050097693066705},
        {-7.75, -1.0307688328309315},
        {-2.5, 1.103156640645243},
        {-0.5, 0.03648997397857652},
        {-0.001, 999.4211381978913},
        {0.001, -1000.5755719318103},
        {0.1, -10.423754940411076},
        {1.0, -0.5772156649015329},
        {1.4, -0.06138454458511624},
        {1.5, 0.03648997397857652},
        {2.5, 0.7031566406452432},
        {9.5, 2.1977378764029494},
        {10.0, 2.251752589066721},
        {100000.0, 11.512920464961896},
        {1000000000000000.0, 34.538776394910684}}},
      {"Ndtri",
       {{1e-300, -37.0470962993612},
        {1e-20, -9.262340089798407},
        {1e-10, -6.361340902404057},
        {0.01, -2.326347874040841},
        {0.13, -1.1263911290388007},
        {0.14, -1.080319340814956},
        {0.3, -0.5244005127080408},
        {0.5, 0.0},
        {0.75, 0.6744897501960817},
        {0.9, 1.2815515655446006},
        {0.999, 3.090232306167813},
        {0.999999, 4.753424308817087}}},
      {"Erfinv",
       {{-0.9999999, -3.7665625816384707},
        {-0.99, -1.8213863677184494},
        {-0.5, -0.4769362762044699},
        {-1e-05, -8.862269254759594e-06},
        {1e-12, 8.86226925452758e-13},
        {1e-09, 8.86226925452758e-10},
        {0.1, 0.08885599049425769},
        {0.49, 0.46586860023505733},
        {0.51, 0.4881220505159588},
        {0.7, 0.7328690779592167},
        {0.999, 2.3267537655135246},
        {0.9999999999999, 5.261483331372676}}},
      {"Dawsn",
       {{-30.0, -0.016675941401059175},
        {-2.0, -0.30134038892379195},
        {1e-10, 1e-10},
        {0.01, 0.009999333359999238},
        {0.24, 0.23099288645028285},
        {0.26, 0.2485934746954505},
        {0.5, 0.4244363835020223},
        {0.9241, 0.5410442238175845},
        {1.0, 0.5380795069127684},
        {1.5, 0.4282490710853986},
        {3.3, 0.15978858047449507},
        {5.0, 0.10213407442427684},
        {7.0, 0.0721809746582363},
        {26.0, 0.019245024851840636},
        {100.0, 0.005000250037509378},
        {10000.0, 5.000000025e-05},
        {10000000.0, 5.000000000000025e-08},
        {1000000000.0, 5e-10}}},
      {"Expint",
       {{1e-10, -22.448635264938925},
        {0.01, -4.017929465426669},
        {0.2, -0.8217605879024003},
        {0.22, -0.7041952245975983},
        {0.23, -0.6485291026274698},
        {0.37, -0.009790148500068083},
        {0.3725, -2.8874183188745963e-05},
        {0.373, 0.001918438379896271},
        {0.5, 0.4542199048631736},
        {0.53, 0.5517304452326643},
        {1.0, 1.8951178163559368},
        {5.0, 40.18527535580318},
        {20.0, 25615652.664056588},
        {39.9, 5479032048901894.0},
        {40.1, 6657825191607100.0},
        {100.0, 2.71555274485388e+41},
        {700.0, 1.4509787360525608e+301},
        {715.0, 4.643625670370571e+307}}},
      {"FresnelCos",
       {{-20.0, -0.4999873349723444},
        {-2.0, -0.48825340607534073},
        {1e-05, 1e-05},
        {0.1, 0.09999753262708508},
        {1.0, 0.7798934003768229},
        {1.5, 0.4452611760398215},
        {1.59, 0.3720264592222394},
        {1.61, 0.3592841534732351},
        {1.7, 0.32382687600390025},
        {2.5, 0.45741300964177706},
        {3.3, 0.4056944037062585},
        {5.0, 0.5636311887040122},
        {10.1, 0.4996033001660811},
        {100.0, 0.4999998986788179},
        {1000.3, 0.5000448367037948},
        {123456.7, 0.4999974600813426}}},
      {"FresnelSin",
       {{-20.0, -0.4840845359259539},
        {-2.0, -0.34341567836369824},
        {0.001, 5.235987755982066e-10},
        {0.1, 0.0005235895476122107},
        {1.0, 0.43825914739035476},
        {1.5, 0.6975049600820931},
        {1.59, 0.6464297519859867},
        {1.61, 0.6310253086563824},
        {1.7, 0.5491959403215686},
        {2.5, 0.6191817558195929},
        {3.3, 0.5192860849820631},
        {5.0, 0.49919138191711687},
        {10.1, 0.5315125665787637},
        {100.0, 0.49681690114783755},
        {1000.3, 0.49968496017986497},
        {123456.7, 0.5000004432897227}}},
      {"Spence",
       {{1e-10, 1.6449340644456414},
        {0.1, 1.2997147230049586},
        {0.4, 0.7275863077163334},
        {0.49, 0.5961653613779507},
        {0.51, 0.5684384438966669},
        {0.9, 0.1026177910993911},
        {0.999, 0.001000250111173652},
        {1.001, -0.000999750111048541},
        {1.5, -0.4484142069236462},
        {1.99, -0.8155258814773397},
        {2.01, -0.8293888705204264},
        {3.0, -1.4367463668836808},
        {100.0, -12.192421669033171},
        {10000000000.0, -266.73983958836556}}},
      {"BesselI0",
       {{-5.0, 27.239871823604446},
        {-0.5, 1.0634833707413236},
        {0.1, 1.0025015629340956},
        {3.0, 4.8807925858650245},
        {7.9, 389.406283282158},
        {8.1, 469.5006067101215},
        {20.0, 43558282.559553534},
        {500.0, 2.504809476570078e+215}}},
      {"BesselI1",
       {{-5.0, -24.335642142450528},
        {-0.5, -0.2578943053908963},
        {0.1, 0.050062526047092694},
        {3.0, 3.9533702174026093},
        {7.9, 363.8539440845084},
        {8.1, 439.48430891035844},
        {20.0, 42454973.38512777},
        {500.0, 2.5023034121761e+215}}},
      {"BesselI0e",
       {{-5.0, 0.18354081260932836},
        {-0.5, 0.6450352704491501},
        {0.1, 0.9071009257823011},
        {3.0, 0.2430003541618254},
        {7.9, 0.14436986414104191},
        {8.1, 0.14251180948829528},
        {20.0, 0.08978031188482602},
        {500.0, 0.017845706500153168},
        {1000000.0, 0.00039894233026924577}}},
      {"BesselI1e",
       {{-5.0, -0.16397226694454237},
        {-0.5, -0.1564208031848717},
        {0.1, 0.045298446808809324},
        {3.0, 0.19682671329730086},
        {7.9, 0.13489649943989376},
        {8.1, 0.13340068832583662},
        {20.0, 0.08750622218328867},
        {500.0, 0.017827851852898056},
        {1000000.0, 0.0003989421307980308}}},
      {"BesselK0",
       {{1e-10, 23.14178244559887},
        {0.1, 2.4270690247020164},
        {1.0, 0.42102443824070834},
        {1.9, 0.1288459792760475},
        {2.1, 0.10078374088996693},
        {3.0, 0.03473950438627925},
        {20.0, 5.741237815336525e-10},
        {500.0, 3.992321609117793e-219}}},
      {"BesselK1",
       {{1e-10, 10000000000.0},
        {0.1, 9.853844780870606},
        {1.0, 0.6019072301972346},
        {1.9, 0.15966015303266762},
        {2.1, 0.12274641153350789},
        {3.0, 0.040156431128194184},
        {20.0, 5.883057969557038e-10},
        {500.0, 3.9963119385460035e-219}}},
      {"BesselK0e",
       {{1e-10, 23.141782447913048},
        {0.1, 2.6823261022628944},
        {1.0, 1.144463079806895},
        {1.9, 0.8614506167517558},
        {2.1, 0.8230171525316621},
        {3.0, 0.6977615980438517},
        {20.0, 0.27854487665718225},
        {500.0, 0.056035915417234516},
        {1000000.0, 0.0012533139806513213}}},
      {"BesselK1e",
       {{1e-10, 10000000001.0},
        {0.1, 10.890182683049696},
        {1.0, 1.6361534862632583},
        {1.9, 1.0674709298145701},
        {2.1, 1.0023680527405792},
        {3.0, 0.8065634801287869},
        {20.0, 0.28542549694072644},
        {500.0, 0.05609192337055557},
        {1000000.0, 0.0012533146073081549}}},
      {"BesselJ0",
       {{-5.0, -0.1775967713143383},
        {0.1, 0.99750156206604},
        {2.4, 0.002507683297243859},
        {2.404825557695773, -6.10876525973673e-17},
        {3.0, -0.26005195490193345},
        {20.0, 0.16702466434058316},
        {100.0, 0.019985850304223122},
        {100000.0, -0.0017192011162359723}}},
      {"BesselJ1",
       {{-5.0, 0.32757913759146523},
        {0.1, 0.049937526036242},
        {2.4, 0.520185268181931},
        {3.8317059702075125, -6.149807356994906e-17},
        {3.0, 0.3390589585259365},
        {20.0, 0.06683312417585005},
        {100.0, -0.07714535201411216},
        {100000.0, 0.0018467575628825677}}},
      {"BesselY0",
       {{1e-05, -7.40316028370197},
        {0.1, -1.5342386513503667},
        {0.8935769662791675, -2.3389279284062102e-17},
        {3.0, 0.3768500100127904},
        {20.0, 0.06264059680938383},
        {100.0, -0.07724431336508315},
        {100000.0, 0.001846766158865064}}},
      {"BesselY1",
       {{1e-05, -63661.97727536548},
        {0.1, -6.4589510947020266},
        {2.197141326031017, 2.513306678922122e-17},
        {3.0, 0.3246744247918},
        {20.0, -0.1655116143625213},
        {100.0, -0.020372312002759792},
        {100000.0, 0.0017192103500882562}}},
  };
  return cases;
}

const std::vector<SpecialValues>& SpecialCases() {
  static const auto& cases = *new std::vector<SpecialValues>{
      {"Igamma",
       {{0.1, 0.2, 0.8794196267900568},
        {0.5, 3.0, 0.9856941215645704},
        {2.0, 1.0, 0.26424111765711533},
        {10.0, 12.0, 0.7576078383294876},
        {100.0, 90.0, 0.15822098918643016},
        {1000.0, 1000.0, 0.5042052441802155},
        {3.0, 3.0, 0.5768099188731565},
        {1.0, 1e-05, 9.999950000166666e-06},
        {10000.0, 10100.0, 0.8413487504471796},
        {30000.0, 29900.0, 0.2822846159646298},
        {100000.0, 100100.0, 0.6244451307044055},
        {1000000.0, 1000000.0, 0.5001329807608725},
        {10000000.0, 9998000.0, 0.2635652854747834},
        {10000000000.0, 10000000000.0, 0.5000013298076014},
        {10000000000.0, 10000100000.0, 0.8413447460725758},
        {1000000000000000.0, 1000000010000000.0, 0.6240851865771923},
        {25000.0, 24000.0, 7.333881096461309e-11},
        {25000.0, 26000.0, 0.9999999997870722}}},
      {"Igammac",
       {{0.1, 0.2, 0.12058037320994318},
        {0.5, 3.0, 0.01430587843542964},
        {2.0, 1.0, 0.7357588823428847},
        {10.0, 12.0, 0.24239216167051233},
        {100.0, 90.0, 0.8417790108135699},
        {1000.0, 1000.0, 0.4957947558197845},
        {3.0, 30.0, 4.501016648012124e-11},
        {1.0, 1e-05, 0.9999900000499998},
        {10000.0, 10100.0, 0.15865124955282037},
        {30000.0, 29900.0, 0.7177153840353703},
        {100000.0, 100100.0, 0.3755548692955945},
        {1000000.0, 1000000.0, 0.4998670192391274},
        {10000000.0, 9998000.0, 0.7364347145252166},
        {10000000000.0, 10000000000.0, 0.4999986701923987},
        {10000000000.0, 10000100000.0, 0.15865525392742424},
        {1000000000000000.0, 1000000010000000.0, 0.3759148134228078},
        {25000.0, 24000.0, 0.9999999999266612},
        {25000.0, 26000.0, 2.12927804507536e-10}}},
      {"IgammaGradA",
       {{0.1, 0.2, -1.1828680306527426},
        {0.5, 3.0, -0.04724032644797375},
        {2.0, 1.0, -0.2761960457028348},
        {10.0, 12.0, -0.09717797203717965},
        {100.0, 90.0, -0.02461191684397991},
        {3.0, 3.0, -0.23681823213329278}}},
      {"Zeta",
       {{1.5, 1.0, 2.612375348685488},
        {2.0, 1.0, 1.6449340668482264},
        {2.0, 0.5, 4.934802200544679},
        {3.0, 10.0, 0.0055249174854010335},
        {10.0, 2.0, 0.0009945751278180853},
        {4.0, 100000.0, 3.3333833336666666e-16},
        {1.001, 3.0, 999.0776349295164},
        {30.0, 1e-05, 9.999999999999976e+149},
        {50.0, 3.0, 1.3929563579707038e-24}}},
      {"Zeta",
       {{2.0, -1.5, 9.379246644989124},
        {3.0, -2.5, 0.0541020258208637},
        {3.0, -2.25, -61.94847488703008},
        {4.0, -10.75, 259.7573428985799},
        {5.0, -1000.125, -32766.583021121423},
        {2.0, -0.5, 8.934802200544679}}},
      {"Polygamma",
       {{0.0, 2.0, 0.42278433509846713},
        {1.0, 2.0, 0.6449340668482264},
        {2.0, 0.5, -16.82879664423432},
        {3.0, 10.0, 0.0023199013042898686},
        {5.0, 3.0, 0.20616743813389676},
        {20.0, 1.5, -487772949462609.9},
        {1.0, -0.5, 8.934802200544679},
        {2.0, -3.25, 123.95521103942203}}},
      {"Betainc",
       {{1.0, 0.5, 0.5, 0.2928932188134525},
        {2.0, 2.0, 0.25, 0.15625},
        {0.5, 3.0, 0.1, 0.5545844446520295},
        {0.1, 0.1, 0.9, 0.593614906063724},
        {60.0, 50.0, 0.5, 0.16909270609833058},
        {100.0, 200.0, 0.4, 0.9916844649260861},
        {1.5, 2.0, 0.75, 0.8930886976527024},
        {0.001, 5.0, 0.5, 0.9999891279249409},
        {1000.0, 1000.0, 0.5, 0.5},
        {1000.0, 900.0, 0.51, 0.07726419693359618},
        {3.0, 10000.0, 0.0001, 0.08032899086535356}}},
  };
  return cases;
}

// Returns column k of the rows.
Tensor Column(DataType dtype, const std::vector<std::vector<double>>& rows, size_t k) {
  std::vector<double> values;
  for (const std::vector<double>& row : rows) values.push_back(row[k]);
  return FromDoubles(dtype, {static_cast<int64_t>(rows.size())}, values);
}

TEST(Special, ComputesFunctionsOfOneNumber) {
  for (const SpecialValues& c : UnarySpecialCases()) {
    SCOPED_TRACE(c.op);
    const Tensor x = Column(DT_DOUBLE, c.values, 0);
    EXPECT_THAT(OpTester(c.op).Input(x).RunOne(),
                TensorNear(Column(DT_DOUBLE, c.values, 1), 2e-15, 3e-14));
  }
}

TEST(Special, ComputesFunctionsOfSeveralNumbers) {
  for (const SpecialValues& c : SpecialCases()) {
    SCOPED_TRACE(c.op);
    const size_t inputs = c.values[0].size() - 1;
    OpTester op(c.op);
    for (size_t k = 0; k < inputs; ++k) op.Input(Column(DT_DOUBLE, c.values, k));
    EXPECT_THAT(op.RunOne(), TensorNear(Column(DT_DOUBLE, c.values, inputs), 1e-15, 5e-11));
  }
}

TEST(Special, OtherTypesAreComputedInDouble) {
  for (const SpecialValues& c : UnarySpecialCases()) {
    for (const DataType dtype : {DT_FLOAT, DT_HALF, DT_BFLOAT16}) {
      SCOPED_TRACE(std::string(c.op) + " of " + DataTypeString(dtype));
      const Tensor x = Column(dtype, c.values, 0);
      const Tensor wide = FromDoubles(DT_DOUBLE, x.shape(), AsDoubles(x));
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor y, OpTester(c.op).Input(wide).RunOne());
      // The result is rounded to float first.
      const Tensor narrow = FromDoubles(DT_FLOAT, x.shape(), AsDoubles(y));
      EXPECT_THAT(OpTester(c.op).Input(x).RunOne(),
                  TensorEq(FromDoubles(dtype, x.shape(), AsDoubles(narrow))));
    }
  }
}

TEST(Special, TakesLargeBroadcastAndEmptyTensors) {
  const Tensor x = RandomTensor(DT_DOUBLE, {7, 401}, 0.1, 9);
  GRADFLOW_EXPECT_OK(OpTester("Digamma").Input(x).RunEverywhere().status());
  const Tensor a = RandomTensor(DT_DOUBLE, {7, 1}, 0.1, 9);
  const auto p = OpTester("Igamma").Input(a).Input(x).RunOne();
  const auto q = OpTester("Igammac").Input(a).Input(x).RunOne();
  GRADFLOW_ASSERT_OK(p);
  GRADFLOW_ASSERT_OK(q);
  EXPECT_THAT(OpTester("AddV2").Input(*p).Input(*q).RunOne(),
              TensorNear(UnaryReference(x, [](double) { return 1; }), 1e-13, 0));
  for (const SpecialValues& c : UnarySpecialCases()) {
    EXPECT_THAT(OpTester(c.op).Input(Tensor(DT_HALF, {0, 2})).RunOne(),
                TensorEq(Tensor(DT_HALF, {0, 2})));
  }
}

TEST(Special, TerminatesForExtremeArguments) {
  const double max = std::numeric_limits<double>::max();
  const std::vector<double> extremes = {
      0,    -0.0,        1e-300,       5e-324, -1e-300, 1,   -1,   2.5,  -2.5,  1e9, -1e9,
      1e15, -1e15 - 0.5, -1e12 - 0.25, 1e100,  -1e100,  max, -max, kInf, -kInf, kNan};
  std::vector<double> a;
  std::vector<double> b;
  for (const double first : extremes) {
    for (const double second : extremes) {
      a.push_back(first);
      b.push_back(second);
    }
  }
  const TensorShape shape({static_cast<int64_t>(a.size())});
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE}) {
    const Tensor x = FromDoubles(dtype, shape, a);
    const Tensor y = FromDoubles(dtype, shape, b);
    for (const SpecialValues& c : UnarySpecialCases()) {
      GRADFLOW_EXPECT_OK(OpTester(c.op).Input(x).Run().status()) << c.op;
    }
    for (const char* op : {"Igamma", "Igammac", "IgammaGradA", "Zeta", "Polygamma"}) {
      GRADFLOW_EXPECT_OK(OpTester(op).Input(x).Input(y).Run().status()) << op;
    }
    for (const double fraction : {0.0, 1e-300, 0.5, 1.0}) {
      GRADFLOW_EXPECT_OK(OpTester("Betainc")
                             .Input(x)
                             .Input(y)
                             .Input(FromDoubles(dtype, {}, {fraction}))
                             .Run()
                             .status());
    }
  }
}

TEST(Betainc, TakesScalarsAndOneShape) {
  EXPECT_THAT(OpTester("Betainc")
                  .Input<double>({1.5}, {})
                  .Input<double>({2}, {})
                  .Input<double>({0.75, 1})
                  .RunOne(),
              TensorNear(AsTensor<double>({0.8930886976527024, 1}), 0, 1e-12));
  EXPECT_THAT(OpTester("Betainc")
                  .UnknownInput(DT_FLOAT, PartialTensorShape({-1, 2}))
                  .UnknownInput(DT_FLOAT, PartialTensorShape({}))
                  .UnknownInput(DT_FLOAT, PartialTensorShape({3, -1}))
                  .InferShape(),
              ShapeIs("[3,2]"));
  EXPECT_THAT(OpTester("Betainc")
                  .UnknownInput(DT_FLOAT)
                  .UnknownInput(DT_FLOAT, PartialTensorShape({}))
                  .UnknownInput(DT_FLOAT, PartialTensorShape({}))
                  .InferShape(),
              ShapeIs("<unknown>"));
  OpTester op("Betainc");
  op.Input<float>({1, 2}).Input<float>({1}).Input<float>({0.5f}, {});
  const auto error = StatusIs(
      kInvalidArgument, "a and b must be scalars or have the same shape, but have [2] and [1]");
  EXPECT_THAT(op.Run(), error);
  EXPECT_THAT(op.InferShape(), error);
}

// The quantile x of probability p has P(a, x) = p, so dx/da = -(dP/da) / (dP/dx).
TEST(RandomGammaGrad, IsTheDerivativeOfTheQuantile) {
  const Tensor a = AsTensor<double>({0.1, 0.5, 1, 2, 10, 100, 3}, {7, 1});
  const Tensor x = AsTensor<double>({0.2, 1, 3, 12}, {4});
  const absl::StatusOr<Tensor> partial = OpTester("IgammaGradA").Input(a).Input(x).RunOne();
  ASSERT_THAT(partial, IsOk());
  Tensor expected(DT_DOUBLE, {7, 4});
  for (int i = 0; i < 28; ++i) {
    const double alpha = a.flat<double>()(i / 4);
    const double sample = x.flat<double>()(i % 4);
    const double density = std::exp((alpha - 1) * std::log(sample) - sample - std::lgamma(alpha));
    expected.flat<double>()(i) = -partial->flat<double>()(i) / density;
  }
  EXPECT_THAT(OpTester("RandomGammaGrad").Input(a).Input(x).RunOne(),
              TensorNear(expected, 1e-12, 1e-9));
  EXPECT_THAT(OpTester("RandomGammaGrad")
                  .Input(AsTensor<float>({2, -1, 1, 1, 0}))
                  .Input(AsTensor<float>({0, 1, -1, kNan, 1}))
                  .RunOne(),
              TensorEq(AsTensor<float>({0, kNan, kNan, kNan, kNan})));
  EXPECT_THAT(OpTester("RandomGammaGrad").Input(Tensor(DT_FLOAT, {0})).Input<float>({1}).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0})));
}

TEST(Special, RefuseTypesThatAreNotAllowed) {
  for (const SpecialValues& c : UnarySpecialCases()) {
    EXPECT_THAT(OpTester(c.op).Input<int32_t>({1}).MakeKernel(),
                StatusIs(kInvalidArgument, HasSubstr("T")))
        << c.op;
  }
  for (const char* op : {"IgammaGradA", "RandomGammaGrad", "Zeta", "Polygamma"}) {
    EXPECT_THAT(OpTester(op).Input(AsTensor<half>({1})).Input(AsTensor<half>({1})).MakeKernel(),
                StatusIs(kInvalidArgument, HasSubstr("T")))
        << op;
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
